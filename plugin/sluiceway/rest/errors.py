"""Maps errors to HTTP responses (Connect's ConnectExceptionMapper)."""

from __future__ import annotations

import http
import logging

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import PlainTextResponse, Response
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Match, Mount
from starlette.types import Scope

from sluiceway.errors import (
    AlreadyExistsError,
    BadRequestError,
    ConfigError,
    ConflictError,
    ConnectError,
    NotFoundError,
)
from sluiceway.rest.bodies import JsonResponse

log = logging.getLogger(__name__)

_METHODS = ("DELETE", "GET", "HEAD", "PATCH", "POST", "PUT")

AMBIGUOUS_SCOPE = "sluiceway.ambiguous"
"""Key in a request's ASGI scope that marks a path which Kafka Connect's server would reject without routing it."""

AMBIGUOUS = "Ambiguous URI path: it contains an encoded slash, backslash or percent sign, and names no connector."

# The first matching class applies.
_CODES: tuple[tuple[type[Exception], int], ...] = (
    (NotFoundError, 404),
    (AlreadyExistsError, 409),
    (ConflictError, 409),
    (BadRequestError, 400),
    (ConfigError, 400),
    (ConnectError, 500),
)


def status_code(error: Exception) -> int:
    """Return the HTTP status for an error; 500 for errors outside the table."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), 500)


def error_response(code: int, message: str, headers: dict[str, str] | None = None) -> JsonResponse:
    """Return a response with Connect's error body."""
    return JsonResponse({"error_code": code, "message": message}, status_code=code, headers=headers)


def install(app: FastAPI) -> None:
    """Register handlers that turn every error into Connect's error body."""
    app.add_exception_handler(ConnectError, _on_connect_error)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_exception_handler(RequestValidationError, _on_unreadable_request)
    app.add_exception_handler(Exception, _on_unexpected_error)


async def _on_connect_error(request: Request, error: Exception) -> Response:
    code = status_code(error)
    if code >= http.HTTPStatus.INTERNAL_SERVER_ERROR:
        log.error("%s %s failed: %s", request.method, request.url.path, error)
    return error_response(code, str(error))


async def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 (registered for it)
    if error.status_code == http.HTTPStatus.METHOD_NOT_ALLOWED and request.method == "OPTIONS":
        return _options(request)
    if error.status_code == http.HTTPStatus.NOT_FOUND and request.scope.get(AMBIGUOUS_SCOPE):
        return error_response(400, AMBIGUOUS)
    phrase = http.HTTPStatus(error.status_code).phrase
    message = f"HTTP {error.status_code} {phrase}" if error.detail == phrase else str(error.detail)
    headers = dict(error.headers or {})
    if error.status_code == http.HTTPStatus.METHOD_NOT_ALLOWED:
        headers["Allow"] = ",".join(_methods(request))  # Starlette lists the methods of one route only
    return error_response(error.status_code, message, headers)


async def _on_unreadable_request(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101 (registered for it)
    where = "; ".join(f"{'.'.join(str(part) for part in each['loc'])}: {each['msg']}" for each in error.errors())
    return error_response(400, f"The request is invalid: {where}.")


async def _on_unexpected_error(_request: Request, error: Exception) -> Response:
    """Respond to a defect. The message leaves out the error's text, which might quote a secret; the server logs the trace."""
    return error_response(500, f"Internal error ({type(error).__name__}); see the log of the REST server.")


def _methods(request: Request) -> list[str]:
    """Return the HTTP methods that a path supports.

    Asks the routes about each method, because FastAPI's newer versions keep the routes of a router to themselves.
    """
    routes = [route for route in request.app.routes if not isinstance(route, Mount)]
    supported = {each for each in _METHODS if any(_serves(route, {**request.scope, "method": each}) for route in routes)}
    return sorted({"OPTIONS", *supported})


def _serves(route: BaseRoute, scope: Scope) -> bool:
    return route.matches(scope)[0] is Match.FULL


def _options(request: Request) -> Response:
    methods = _methods(request)
    allow = {"Allow": ",".join(methods)}
    if request.headers.get("accept", "").partition(";")[0].strip().lower() == "application/json":
        return Response(headers={**allow, "Content-Type": "application/json"})
    return PlainTextResponse(", ".join(methods), headers=allow)
