"""What holds for every request: paths, names in paths, and content types."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote_to_bytes

from sluiceway.errors import BadRequestError
from sluiceway.rest.errors import error_response
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

_AMBIGUOUS = re.compile(rb"%2f|%25|%5c|//", re.IGNORECASE)
_UNREACHABLE = re.compile(r"[/%\\]|^\.\.?$")
_JSON = {"application/json", "application/*", "*/*"}
_BODIES = {"POST", "PUT", "PATCH"}


class PathRules:
    """ASGI middleware: refuses ambiguous paths, as Connect's server does, and takes a path with a slash at its end."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            reason = _refusal(scope.get("raw_path") or b"")
            if reason:
                await error_response(400, reason)(scope, receive, send)
                return
            path, root = scope["path"], scope.get("root_path", "")
            if path.endswith("/") and len(path) > len(root) + 1:
                scope = {**scope, "path": path.rstrip("/")}
        await self._app(scope, receive, send)


def _refusal(raw_path: bytes) -> str | None:
    if _AMBIGUOUS.search(raw_path):
        return "Ambiguous URI path: it contains //, or an encoded slash, backslash or percent sign."
    try:
        unquote_to_bytes(raw_path).decode()
    except UnicodeDecodeError:
        return "Bad UTF-8 encoding in the URI path."
    return None


async def json_only(request: Request) -> None:
    """Route dependency: refuse what is not JSON, in either direction."""
    sent = request.headers.get("content-type")
    if request.method in _BODIES and sent is not None and _media_type(sent) != "application/json":
        raise HTTPException(415)
    accepted = request.headers.get("accept")
    if accepted and not any(_media_type(each) in _JSON for each in accepted.split(",")):
        raise HTTPException(406)


def _media_type(header: str) -> str:
    return header.partition(";")[0].strip().lower()


def reachable(name: str) -> str:
    """Return a new connector's name if a request can name it; raises BadRequestError.

    Kafka Connect takes any name and then answers 400 to every request about a connector that is called ``a/b`` or ``100%``.
    """
    if _UNREACHABLE.search(name):
        raise BadRequestError(f"Connector name {name} cannot be part of a URL: leave out / \\ % and do not call it . or ..")
    return name


def location(request: Request, name: str) -> str:
    """Return a connector's URL, for the Location header; below the prefix where the app is mounted."""
    root = f"{request.url.scheme}://{request.url.netloc}{request.scope.get('root_path', '').rstrip('/')}"
    return f"{root}/connectors/{quote(name, safe=';=:@!$&+,*()~')}"
