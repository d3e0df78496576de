"""Keeps Airflow's API server from waiting for itself when Airflow's database is SQLite. Imports no large packages."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_READING = frozenset({"GET", "HEAD", "OPTIONS"})


class OneWriteAtATime:
    """ASGI middleware of the API server: a request that may write waits until the one before it has ended.

    SQLite has one writer at a time, and Airflow commits its audit log in the server's event loop, which then waits for SQLite's
    lock. If another request of the same server holds the lock, it cannot end either, since the end of its session needs the event
    loop: the server answers nothing until the lock's timeout, and then fails one of the two.

    Args:
        app: the application.
        free: the prefix of paths that do not write to Airflow's database in a request, and that may take long.
    """

    def __init__(self, app: ASGIApp, free: str) -> None:
        self._app = app
        self._free = free
        self._write = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in _READING or scope["path"].startswith(self._free):
            await self._app(scope, receive, send)
            return
        async with self._write:
            await self._app(scope, receive, send)
