"""ASGI middleware that makes a span of each request that changes something, for traces by OpenTelemetry."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sluiceway.telemetry.tracing import CONNECTOR, Tracing, root, tracing

_READING = ("GET", "HEAD", "OPTIONS")


class RequestSpans:
    """Continues the trace of the request's header ``traceparent``. Requests that only read have no span."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        made = None if scope["type"] != "http" or scope["method"] in _READING else tracing()
        if made is None:
            await self._app(scope, receive, send)
        else:
            await self._traced(made, scope, receive, send)

    async def _traced(self, made: Tracing, scope: Scope, receive: Receive, send: Send) -> None:
        from opentelemetry.trace import StatusCode

        method = str(scope["method"])
        headers = [(name.decode("latin-1"), value) for name, value in scope["headers"]]
        context = made.context_of(headers) or root()
        with made.span(method, {"http.request.method": method}, kind="SERVER", context=context) as span:

            async def answer(message: Message) -> None:
                if message["type"] == "http.response.start":
                    status = int(message["status"])
                    span.set_attribute("http.response.status_code", status)
                    if status >= 500:
                        span.set_status(StatusCode.ERROR)
                await send(message)

            await self._app(scope, receive, answer)
            route = getattr(scope.get("route"), "path_format", None)
            if route is not None:
                span.update_name(f"{method} {route}")
                span.set_attribute("http.route", route)
            if (name := scope.get("path_params", {}).get("name")) is not None:
                span.set_attribute(CONNECTOR, str(name))
