"""The scheduler of a local Airflow waits for the API server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from sluiceway.provider.local_component import HOST, await_api_server
from sluiceway.stack.ports import free_port
from support.eventually import NEVER


class _Api(BaseHTTPRequestHandler):
    status = 200

    def do_GET(self) -> None:
        self.send_response(self.status if self.path == "/execution/health" else 500)
        self.end_headers()

    def log_message(self, *arguments: object) -> None: ...


class _Busy(_Api):
    status = 503


@pytest.fixture
def port() -> int:
    return free_port(HOST)


@pytest.fixture
def late(port: int) -> Iterator[list[HTTPServer]]:
    """Servers that a test starts."""
    servers: list[HTTPServer] = []
    yield servers
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("api", [_Api, _Busy], ids=["healthy", "answering"])
@pytest.mark.parametrize("path", ["/execution/", "/execution"])
def test_the_wait_ends_when_the_api_server_answers(api: type[_Api], path: str, port: int, late: list[HTTPServer]) -> None:
    waits = threading.Event()
    answered: list[bool] = []

    def wait() -> None:
        waits.set()
        answered.append(await_api_server(f"http://{HOST}:{port}{path}", NEVER))

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    waits.wait()
    assert answered == []
    late.append(HTTPServer((HOST, port), api))
    threading.Thread(target=late[0].serve_forever, daemon=True).start()
    waiting.join()
    assert answered == [True]


def test_the_scheduler_starts_even_without_an_api_server(port: int) -> None:
    assert await_api_server(f"http://{HOST}:{port}/execution/", 0.0) is False
