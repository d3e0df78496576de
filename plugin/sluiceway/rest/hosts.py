"""ASGI middleware for listeners on this machine's own addresses: it refuses requests that a web page of another site sends."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from sluiceway.rest.errors import error_response


class OwnHosts:
    """Refuses with 403 a request whose ``Host`` is not a name of this machine, or whose ``Origin`` is another site.

    A listener on a loopback address asks for no credentials by default, and a browser on the machine reaches it for any page: by
    a name that its site resolves to 127.0.0.1 (DNS rebinding), and with requests that need no permission of the server (CSRF).
    ``names`` are further names, such as that of a proxy, ``origins`` those of pages that may call the API (CORS).
    """

    def __init__(self, app: ASGIApp, names: frozenset[str], origins: tuple[str, ...] = ()) -> None:
        self._app = app
        self._names = names | {"localhost"}
        self._origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (refusal := self._refusal(Headers(scope=scope))):
            await error_response(403, refusal)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _refusal(self, headers: Headers) -> str:
        host, origin = headers.get("host", ""), headers.get("origin")
        if host and not self._is_own(host):
            return (
                "Forbidden: only this machine may call this address. If a proxy does, set rest.advertised.host.name to its name."
            )
        if origin is None or "*" in self._origins or origin in self._origins or self._is_own(origin.partition("://")[2]):
            return ""
        return "Forbidden: pages of other sites may not call this API. access.control.allow.origin allows some."

    def _is_own(self, host: str) -> bool:
        try:
            name = (urlsplit(f"//{host}").hostname or "").rstrip(".")
        except ValueError:
            return False
        return name in self._names or is_loopback(name)


def is_loopback(host: str) -> bool:
    """Return whether a host is an address that only this machine reaches."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
