"""Serves the listeners of one protocol with an event loop on a dedicated thread."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Sequence
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from sluiceway.errors import ConnectError, MissingToolError
from sluiceway.rest.requests import IDLE_SECONDS
from sluiceway.rest.settings import Listener

_START_SECONDS = 30.0
_STOP_SECONDS = 5


class ListenerGroup:
    """The listeners of one protocol. Call ``bind``, then ``start``; ``stop`` is allowed at any time. ``context`` is for https."""

    def __init__(self, listeners: Sequence[Listener], app: FastAPI, context: ssl.SSLContext | None = None) -> None:
        self._listeners = listeners
        self._sockets: list[socket.socket] = []
        self.scheme = listeners[0].scheme
        self._server = uvicorn.Server(
            _Config(
                app,
                context,
                http=_Protocol,
                timeout_keep_alive=int(IDLE_SECONDS),
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=_STOP_SECONDS,
            )
        )
        self._thread = threading.Thread(target=self._serve, name=f"rest-{self.scheme}", daemon=True)

    @property
    def urls(self) -> list[str]:
        """The URLs of the listeners; empty before ``bind``."""
        return [_url(self.scheme, each) for each in self._sockets]

    def bind(self) -> None:
        """Bind the addresses. Raises MissingToolError for one that cannot be bound."""
        for listener in self._listeners:
            self._sockets.append(_bind(listener))

    def start(self) -> None:
        """Start serving and return once requests are served. Raises ConnectError after 30 s."""
        self._thread.start()
        waited = threading.Event()
        for _ in range(int(_START_SECONDS / 0.02)):
            if self._server.started or not self._thread.is_alive():
                break
            waited.wait(0.02)
        if not self._server.started:
            raise ConnectError(f"The REST server did not start on {', '.join(self.urls)}; see its log.")

    def ask_to_stop(self) -> None:
        self._server.should_exit = True

    def stop(self) -> None:
        """Wait up to 5 s for running requests, then close the sockets."""
        self.ask_to_stop()
        if self._thread.is_alive():
            self._thread.join(_STOP_SECONDS + 5)
        for each in self._sockets:
            each.close()

    def _serve(self) -> None:
        self._server.run(sockets=list(self._sockets))


class _Protocol(H11Protocol):
    """Closes connections on which no whole request head arrives in time.

    Of h11, because httptools rejects unknown methods itself, without Connect's error body.
    """

    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._end_wait()

    def _watch(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:  # a request is being served
            self._end_wait()
        elif self._waiting is None:
            self._waiting = self.loop.call_later(IDLE_SECONDS, self.transport.close)

    def _end_wait(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None


class _Config(uvicorn.Config):
    """uvicorn's config with a finished TLS context, for which its older versions have no argument."""

    def __init__(self, app: FastAPI, context: ssl.SSLContext | None, **options: Any) -> None:
        super().__init__(app, **options)
        self._context = context

    def load(self) -> None:
        super().load()
        self.ssl = self._context


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
            "Stop the process that uses the port, or set another port in 'listeners'."
        ) from error
    return bound


def _url(scheme: str, bound: socket.socket) -> str:
    host, port = bound.getsockname()[:2]
    host = "localhost" if host in ("0.0.0.0", "::") else host  # noqa: S104 (compared, not bound)
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
