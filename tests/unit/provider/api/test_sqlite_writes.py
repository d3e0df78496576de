"""Tests of the order of requests that write to Airflow's SQLite database."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from sluiceway.provider.api.sqlite_writes import OneWriteAtATime


async def _receive() -> Any:
    raise AssertionError("the app reads no body")


async def _send(_message: Any) -> None:
    raise AssertionError("the app answers nothing")


class _App:
    """An app whose requests last until they are let go. ``begun`` lists the paths of those that have begun."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.go = asyncio.Event()

    async def __call__(self, scope: Any, _receive: Any, _send: Any) -> None:
        self.begun.append(scope["path"])
        await self.go.wait()
        if scope["path"] == "/fails":
            raise ValueError("a failed request")


async def _begun_together(*requests: tuple[str, str]) -> tuple[list[str], list[str]]:
    """Send requests at once; return the paths of those begun before any ended, and of all in the end."""
    app = _App()
    server = OneWriteAtATime(app, free="/sluiceway/")

    scopes = [{"type": "http", "method": method, "path": path} for method, path in requests]
    sent = [asyncio.ensure_future(server(scope, _receive, _send)) for scope in scopes]
    for _ in range(10):
        await asyncio.sleep(0)
    first = list(app.begun)
    app.go.set()
    await asyncio.gather(*sent, return_exceptions=True)
    return first, app.begun


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_a_write_waits_for_the_end_of_the_one_before(method: str) -> None:
    assert asyncio.run(_begun_together((method, "/a"), ("PATCH", "/b"))) == (["/a"], ["/a", "/b"])


def test_a_write_waits_no_longer_than_a_request_that_fails() -> None:
    assert asyncio.run(_begun_together(("POST", "/fails"), ("POST", "/b"))) == (["/fails"], ["/fails", "/b"])


def test_reads_and_the_connectors_api_wait_for_no_write() -> None:
    requests = [("POST", "/a"), ("GET", "/b"), ("HEAD", "/c"), ("PUT", "/sluiceway/connectors/x/pause")]
    paths = [path for _, path in requests]
    assert asyncio.run(_begun_together(*requests)) == (paths, paths)


def test_other_traffic_than_requests_waits_for_nothing() -> None:
    async def lifespan() -> list[str]:
        app = _App()
        app.go.set()
        await OneWriteAtATime(app, free="/sluiceway/")({"type": "lifespan", "path": "/"}, _receive, _send)
        return app.begun

    assert asyncio.run(lifespan()) == ["/"]
