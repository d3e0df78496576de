"""ASGI middleware for the whole app: configured response headers, and CORS."""

from __future__ import annotations

from email.utils import formatdate

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sluiceway.rest.settings import CorsRules, HeaderRule

_PREFLIGHT_SECONDS = "60"


class ExtraHeaders:
    """Adds the headers of ``response.http.headers.config`` to every response."""

    def __init__(self, app: ASGIApp, rules: tuple[HeaderRule, ...]) -> None:
        self._app = app
        self._rules = rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for rule in self._rules:
                    value = formatdate(usegmt=True) if rule.value is None else rule.value
                    if rule.replaces:
                        headers[rule.name] = value
                    else:
                        headers.append(rule.name, value)
            await send(message)

        await self._app(scope, receive, with_headers if scope["type"] == "http" else send)


class Cors:
    """Allows scripts of configured origins to call the API, and responds to preflight requests.

    A preflight request carries no credentials, so this middleware is outside authentication.
    """

    def __init__(self, app: ASGIApp, rules: CorsRules) -> None:
        self._app = app
        self._rules = rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Headers(scope=scope)
        origin = request.get("origin", "")
        allowed = bool(origin) and any(each in ("*", origin) for each in self._rules.origins)
        if allowed and scope["method"] == "OPTIONS" and "access-control-request-method" in request:
            await Response(headers=self._preflight(origin, request))(scope, receive, send)
            return

        async def with_origin(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.add_vary_header("Origin")
                if allowed:
                    headers["Access-Control-Allow-Origin"] = origin
            await send(message)

        await self._app(scope, receive, with_origin)

    def _preflight(self, origin: str, request: Headers) -> dict[str, str]:
        return {
            "Access-Control-Allow-Origin": origin,
            "Access-Control-Allow-Methods": ",".join(self._rules.methods),
            "Access-Control-Allow-Headers": request.get("access-control-request-headers", "Content-Type"),
            "Access-Control-Max-Age": _PREFLIGHT_SECONDS,
            "Vary": "Origin",
        }
