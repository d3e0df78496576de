"""Rules for every request: paths, connector names in paths, and content types."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import quote, unquote

from fastapi import APIRouter
from fastapi.responses import Response
from starlette.convertors import Convertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from sluiceway.rest.errors import AMBIGUOUS_SCOPE, error_response

_AMBIGUOUS = re.compile(rb"%2f|%25|%5c", re.IGNORECASE)
_MALFORMED = re.compile(rb"%(?![0-9a-f]{2})", re.IGNORECASE)
_CONTROL = re.compile("[\x00-\x1f\x7f]")
_JSON = {"application/json", "application/*", "*/*"}
_UNQUOTED = ";=:@!$&+,*()~'"  # in a Location header, by Connect
# Replaces a slash within a name during routing. A Unicode noncharacter, so no valid path contains it.
_SLASH = "\ufdd0"

Endpoint = TypeVar("Endpoint", bound=Callable[..., Response])


class _Segment(Convertor[str]):
    """A path parameter of one segment, which may contain a slash that was sent as %2F."""

    regex = "[^/]+"

    def convert(self, value: str) -> str:
        return value.replace(_SLASH, "/")

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("segment", _Segment())


class PathRules:
    """ASGI middleware that rejects malformed paths, as Connect's server does, and strips a trailing slash.

    Connect's server rejects every path with an encoded slash, backslash or percent sign, so it cannot reach a connector with such
    a name. This middleware marks the request instead; it is rejected later unless it names an existing connector.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            raw_path = (scope.get("raw_path") or quote(scope["path"]).encode()).partition(b"?")[0]
            refusal = _refusal(raw_path)
            if refusal:
                await error_response(400, refusal)(scope, receive, send)
                return
            path, root = scope["path"], scope.get("root_path", "")
            if _AMBIGUOUS.search(raw_path):
                path = "/".join(unquote(segment).replace("/", _SLASH) for segment in raw_path.decode("ascii").split("/"))
                scope = {**scope, AMBIGUOUS_SCOPE: True}
            if path.endswith("/") and len(path) > len(root) + 1:
                path = path.rstrip("/")
            scope = {**scope, "path": path}
        await self._app(scope, receive, send)


def _refusal(raw_path: bytes) -> str | None:
    try:
        path = raw_path.decode("ascii")
        text = unquote(path, errors="strict")
    except UnicodeDecodeError:
        return "Bad UTF-8 encoding in the URI path."
    if b"//" in raw_path:
        return "Ambiguous URI path: it contains an empty segment (//)."
    if _MALFORMED.search(raw_path) or _CONTROL.search(text) or _SLASH in text:
        return "Bad URI path: it contains a control character or a % that two hexadecimal digits do not follow."
    return None


async def json_only(request: Request) -> None:
    """Route dependency: reject a request whose body is not JSON or whose client does not accept JSON."""
    sent = request.headers.get("content-type")
    if sent is None:
        refused = request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers
    else:
        refused = _media_type(sent) not in _JSON
    if refused:
        raise HTTPException(415)
    await accepts_json(request)


async def accepts_json(request: Request) -> None:
    """Route dependency: reject a request whose client does not accept JSON."""
    accepted = request.headers.get("accept")
    if accepted and not any(_media_type(each) in _JSON for each in accepted.split(",")):
        raise HTTPException(406)


def _media_type(header: str) -> str:
    return header.partition(";")[0].strip().lower()


def location(request: Request, name: str) -> str:
    """Return a connector's URL for the Location header, including the prefix of a mounted app."""
    root = f"{request.url.scheme}://{request.url.netloc}{request.scope.get('root_path', '').rstrip('/')}"
    return f"{root}/connectors/{quote(name, safe=_UNQUOTED)}"


def readable(router: APIRouter, path: str, **described: Any) -> Callable[[Endpoint], Endpoint]:
    """Register an endpoint for GET and HEAD. HEAD is not in the OpenAPI description."""

    def register(endpoint: Endpoint) -> Endpoint:
        router.head(path, include_in_schema=False)(endpoint)
        return router.get(path, **described)(endpoint)

    return register
