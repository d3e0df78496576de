"""Bodies that are too large or do not come, clients that send no request, and requests for other hosts."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.herder import Herder
from sluiceway.rest import requests
from sluiceway.rest.server import RestServer
from sluiceway.storage.memory import MemoryConfigBackingStore, MemoryStatusBackingStore
from support.eventually import LIMIT
from unit.rest.servers import new_server

SOURCE = {"connector.class": "MockSource"}
PUT = b"PUT /connectors/c/config HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.fixture
def address() -> Iterator[str]:
    server = new_server()
    server.start()
    yield server.addresses[0]
    server.stop()


def connected(address: str) -> socket.socket:
    parts = urlsplit(address)
    return socket.create_connection((parts.hostname, parts.port or 0), timeout=LIMIT)


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_of_more_than_a_megabyte_is_refused(address: str, chunked: bool) -> None:
    text = b'{"a": "' + b"x" * (1 << 20) + b'"}'
    headers = {"content-type": "application/json"}
    answer = httpx.put(f"{address}/connectors/c/config", content=iter([text]) if chunked else text, headers=headers)
    assert (answer.status_code, answer.json()["message"]) == (413, "The request body is larger than 1048576 bytes.")
    config = {**SOURCE, "long": "x" * 1_000_000}
    assert httpx.put(f"{address}/connectors/c/config", json=config).status_code == 201


@pytest.mark.parametrize("length", ["2000000", "9" * 5000])
def test_the_announced_size_is_enough_to_refuse_it(address: str, length: str) -> None:
    with connected(address) as client:
        client.sendall(PUT + f"Content-Length: {length}\r\n\r\n".encode())
        assert client.recv(100).startswith((b"HTTP/1.1 413 ", b"HTTP/1.1 400 "))


def test_a_config_of_more_than_10000_keys_is_refused(address: str) -> None:
    config = {**SOURCE, **{f"k{number}": "" for number in range(10_000)}}
    answer = httpx.put(f"{address}/connectors/c/config", json=config)
    assert (answer.status_code, "10001 keys" in answer.json()["message"]) == (400, True)
    del config["k0"]
    assert httpx.put(f"{address}/connectors/c/config", json=config).status_code == 201


@pytest.mark.parametrize("sent", [b"", b"GET /connectors HTTP/1.1\r\nHost: localhost\r\n"])
def test_a_client_that_sends_no_whole_head_is_disconnected(address: str, sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    assert requests.IDLE_SECONDS == 30
    monkeypatch.setattr("sluiceway.rest.listening.IDLE_SECONDS", 0.2)
    with connected(address) as client:
        client.sendall(sent)
        assert client.recv(1) == b""


def test_a_connection_that_has_been_used_is_watched_too(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sluiceway.rest.listening.IDLE_SECONDS", 0.5)
    with connected(address) as client:
        answers = client.makefile("rb")
        client.sendall(b"GET /connectors HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert answers.readline() == b"HTTP/1.1 200 OK\r\n"
        client.sendall(b"GET /connectors HTTP/1.1\r\n")
        assert answers.read().endswith(b"[]")


def test_a_body_that_does_not_come_is_given_up(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "IDLE_SECONDS", 0.2)
    with connected(address) as client:
        client.sendall(PUT + b"Content-Length: 9\r\n\r\n{")
        assert client.recv(100).startswith(b"HTTP/1.1 408 ")


HOSTS = [
    ({"Host": "localhost:8083"}, 200),
    ({"Host": "LOCALHOST"}, 200),
    ({"Host": "127.0.0.1:8083"}, 200),
    ({"Host": "127.8.0.1"}, 200),
    ({"Host": "[::1]:8083"}, 200),
    ({"Host": "evil.example"}, 403),
    ({"Host": "localhost.evil.example"}, 403),
    ({"Host": "127.0.0.1.evil.example:8083"}, 403),
    ({"Host": "evil@localhost.evil.example"}, 403),
    ({"Host": "10.0.0.1"}, 403),
    ({"Host": "localhost", "Origin": "http://localhost:3000"}, 200),
    ({"Host": "localhost", "Origin": "https://evil.example"}, 403),
    ({"Host": "localhost", "Origin": "null"}, 403),
    ({"Host": "localhost", "Origin": "http://[bad"}, 403),
]


@pytest.mark.parametrize(("headers", "status"), HOSTS)
def test_a_loopback_listener_serves_its_own_machine_only(address: str, headers: dict[str, str], status: int) -> None:
    assert httpx.get(f"{address}/connectors", headers=headers).status_code == status


@pytest.mark.parametrize(
    ("listener", "more", "headers", "status"),
    [
        ("http://127.0.0.1:0", {"rest.advertised.host.name": "Connect.example"}, {"Host": "connect.example"}, 200),
        ("http://127.0.0.1:0", {"access.control.allow.origin": "https://ui.example"}, {"Origin": "https://ui.example"}, 200),
        ("http://127.0.0.1:0", {"access.control.allow.origin": "*"}, {"Origin": "https://any.example"}, 200),
        ("http://:0", {}, {"Host": "connect.example"}, 200),
        ("http://localhost:0", {}, {"Host": "evil.example"}, 403),
    ],
)
def test_other_names_are_those_of_the_worker_file(
    listener: str, more: dict[str, str], headers: dict[str, str], status: int
) -> None:
    worker = WorkerConfig.of({"listeners": listener, **more})
    herder = Herder(worker, MemoryConfigBackingStore(), MemoryStatusBackingStore())
    server = RestServer(worker, lambda: herder)
    server.start()
    try:
        assert httpx.get(f"{server.addresses[0]}/connectors", headers=headers).status_code == status
    finally:
        server.stop()
