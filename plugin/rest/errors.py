"""Which HTTP answer an error becomes: the one place that knows."""

from __future__ import annotations

import http
import logging

from fastapi import FastAPI, Request
from fastapi.responses import PlainTextResponse, Response
from sluiceway.errors import (
    AlreadyExistsError,
    BadRequestError,
    ConfigError,
    ConflictError,
    ConnectError,
    NotFoundError,
)
from sluiceway.rest.bodies import JsonResponse, UnreadableBodyError
from starlette.exceptions import HTTPException
from starlette.routing import Match, Route

log = logging.getLogger(__name__)

# The first class that fits counts. Connect answers 500 to a body that it cannot read, and clients see that as it is.
_CODES: tuple[tuple[type[Exception], int], ...] = (
    (NotFoundError, 404),
    (AlreadyExistsError, 409),
    (ConflictError, 409),
    (BadRequestError, 400),
    (ConfigError, 400),
    (UnreadableBodyError, 500),
    (ConnectError, 500),
)


def status_code(error: Exception) -> int:
    """Return the HTTP status for an error of ours; 500 for any other."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), 500)


def error_response(code: int, message: str, headers: dict[str, str] | None = None) -> JsonResponse:
    """Return Connect's error body."""
    return JsonResponse({"error_code": code, "message": message}, status_code=code, headers=headers)


def install(app: FastAPI) -> None:
    """Make the app answer every error in Connect's form."""
    for kind in (ConnectError, UnreadableBodyError):
        app.add_exception_handler(kind, _on_own_error)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_exception_handler(Exception, _on_other_error)


async def _on_own_error(request: Request, error: Exception) -> Response:
    code = status_code(error)
    if code >= http.HTTPStatus.INTERNAL_SERVER_ERROR and isinstance(error, ConnectError):
        log.error("%s %s failed: %s", request.method, request.url.path, error)
    return error_response(code, str(error))


async def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 (registered for it)
    if error.status_code == http.HTTPStatus.METHOD_NOT_ALLOWED and request.method == "OPTIONS":
        return _options(request)
    phrase = http.HTTPStatus(error.status_code).phrase
    message = f"HTTP {error.status_code} {phrase}" if error.detail == phrase else str(error.detail)
    return error_response(error.status_code, message, dict(error.headers or {}))


async def _on_other_error(_request: Request, error: Exception) -> Response:
    """Answer a defect of ours; the server logs its trace. Its text might quote a secret and stays out of the answer."""
    return error_response(500, f"Internal error ({type(error).__name__}); the REST server's log has the details.")


def _options(request: Request) -> Response:
    """Say which methods a path has."""
    methods = {"OPTIONS"}
    for route in request.app.routes:
        if isinstance(route, Route) and route.matches(request.scope)[0] is not Match.NONE:
            methods |= route.methods or set()
    return PlainTextResponse(", ".join(sorted(methods)), headers={"Allow": ",".join(sorted(methods))})
