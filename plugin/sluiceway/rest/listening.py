"""Listeners of one protocol, served by one event loop on a thread of its own."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Sequence

import uvicorn
from fastapi import FastAPI

from sluiceway.errors import ConnectError, MissingToolError
from sluiceway.rest.settings import Listener

_START_SECONDS = 30.0
_STOP_SECONDS = 5


class ListenerGroup:
    """``context`` is for https. ``bind`` first, then ``start``; ``stop`` may be called at any time."""

    def __init__(self, listeners: Sequence[Listener], app: FastAPI, context: ssl.SSLContext | None = None) -> None:
        self._listeners = listeners
        self._sockets: list[socket.socket] = []
        self.scheme = listeners[0].scheme
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                http="h11",  # httptools knows a list of methods, and answers others itself, in a form of its own
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=_STOP_SECONDS,
                ssl_context_factory=None if context is None else lambda _config, _default: context,
            )
        )
        self._thread = threading.Thread(target=self._serve, name=f"rest-{self.scheme}", daemon=True)

    @property
    def urls(self) -> list[str]:
        """Where it answers, once bound."""
        return [_url(self.scheme, each) for each in self._sockets]

    def bind(self) -> None:
        """Take the addresses; raises MissingToolError for one that cannot be had."""
        for listener in self._listeners:
            self._sockets.append(_bind(listener))

    def start(self) -> None:
        """Return once requests are answered; raises ConnectError if that does not come about."""
        self._thread.start()
        waited = threading.Event()
        for _ in range(int(_START_SECONDS / 0.02)):
            if self._server.started or not self._thread.is_alive():
                break
            waited.wait(0.02)
        if not self._server.started:
            raise ConnectError(f"The REST server did not start on {', '.join(self.urls)}; see the log.")

    def ask_to_stop(self) -> None:
        self._server.should_exit = True

    def stop(self) -> None:
        """Let running requests finish, for 5 s at most, and close the sockets."""
        self.ask_to_stop()
        if self._thread.is_alive():
            self._thread.join(_STOP_SECONDS + 5)
        for each in self._sockets:
            each.close()

    def _serve(self) -> None:
        self._server.run(sockets=list(self._sockets))


def _bind(listener: Listener) -> socket.socket:
    family = socket.AF_INET6 if ":" in listener.host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((listener.host, listener.port))
        bound.listen(socket.SOMAXCONN)
    except OSError as error:
        bound.close()
        raise MissingToolError(
            f"Cannot listen on {listener.host or '*'}:{listener.port}: {error.strerror or error}. "
            "Stop what uses the port, or set another in 'listeners'."
        ) from error
    return bound


def _url(scheme: str, bound: socket.socket) -> str:
    host, port = bound.getsockname()[:2]
    host = "localhost" if host in ("0.0.0.0", "::") else host  # noqa: S104 (compared, not bound)
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
