"""The server on real sockets of this machine, and the client against it."""

from __future__ import annotations

import pickle
import socket
import threading
from collections.abc import Iterator, Mapping

import httpx
import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConfigError, MissingToolError
from sluiceway.herder import Herder
from sluiceway.rest import cluster
from sluiceway.rest.client import ConnectClient, RestError
from sluiceway.rest.cluster import ClusterId
from sluiceway.rest.server import RestServer
from sluiceway.rest.settings import Listener, parse_listener
from sluiceway.storage.memory import MemoryConfigBackingStore, MemoryStatusBackingStore

SOURCE = {"connector.class": "FileStreamSource", "topic": "t"}


@pytest.fixture(autouse=True)
def no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_ask", lambda _worker: "some-cluster")


def new_server(listeners: str = "http://127.0.0.1:0", herder: Herder | None = None) -> RestServer:
    worker = WorkerConfig.of({"listeners": listeners})
    herder = herder or Herder(worker, MemoryConfigBackingStore(), MemoryStatusBackingStore())
    return RestServer(worker, lambda: herder)


@pytest.fixture
def server() -> Iterator[RestServer]:
    server = new_server()
    server.start()
    yield server
    server.stop()


@pytest.fixture
def client(server: RestServer) -> Iterator[ConnectClient]:
    with ConnectClient(server.addresses[0]) as client:
        yield client


def test_the_client_leads_a_connector_through_its_life(client: ConnectClient) -> None:
    assert client.put_config("a b?c#d", SOURCE) is True
    assert client.put_config("a b?c#d", SOURCE | {"batch.size": "5"}) is False
    assert client.create("c", SOURCE, "PAUSED")["name"] == "c"
    assert client.connectors() == ["a b?c#d", "c"]
    assert client.config("a b?c#d") == SOURCE | {"batch.size": "5", "name": "a b?c#d"}
    assert client.info("a b?c#d")["type"] == "source"
    client.pause("a b?c#d")
    assert client.status("a b?c#d")["connector"]["state"] == "PAUSED"
    client.stop("a b?c#d")
    client.resume("c")
    assert {name: status["connector"]["state"] for name, status in client.statuses().items()} == {
        "a b?c#d": "STOPPED",
        "c": "PAUSED",
    }
    assert client.tasks("a b?c#d") == []
    client.delete("a b?c#d")
    assert client.connectors() == ["c"]


def test_a_method_that_http_does_not_know_is_answered_like_any_other(server: RestServer) -> None:
    answer = httpx.request("FOO", f"{server.addresses[0]}/connectors")
    assert answer.json() == {"error_code": 405, "message": "HTTP 405 Method Not Allowed"}
    assert httpx.request("FOO", f"{server.addresses[0]}/nope").json()["error_code"] == 404


def test_the_root_tells_the_clusters_id(client: ConnectClient) -> None:
    assert client.root()["kafka_cluster_id"] == "some-cluster"


def test_a_refusal_carries_the_servers_message_and_pickles(client: ConnectClient) -> None:
    with pytest.raises(RestError) as caught:
        client.status("none")
    copy = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 (our own)
    assert (copy.status, str(copy)) == (404, "No status found for connector none")


def test_a_server_that_is_not_there_is_an_error_that_names_it(server: RestServer) -> None:
    address = server.addresses[0]
    server.stop()
    with pytest.raises(RestError, match=f"Cannot reach the REST API at {address}"):
        ConnectClient(address).connectors()


@pytest.mark.parametrize("server_url", ["no-scheme", "http://", "http://a\nb", "ftp://x"])
def test_an_address_that_is_none_is_an_error_too(server_url: str) -> None:
    with pytest.raises(RestError, match="Cannot reach"):
        ConnectClient(server_url).connectors()


def test_a_web_page_is_not_taken_for_an_answer() -> None:
    client = ConnectClient("http://airflow")
    page = httpx.MockTransport(lambda _: httpx.Response(200, html="<html>"))
    client._http = httpx.Client(transport=page)
    with pytest.raises(RestError, match="not a Kafka Connect REST API"):
        client.connectors()


def test_a_refusal_that_is_not_connects_is_told_by_its_status() -> None:
    client = ConnectClient("http://proxy")
    client._http = httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(502, text="bad gateway")))
    with pytest.raises(RestError, match=r"GET http://proxy/connectors answered 502 Bad Gateway"):
        client.connectors()


def test_every_listener_answers() -> None:
    server = new_server("http://127.0.0.1:0,http://localhost:0")
    server.start()
    try:
        assert len(set(server.addresses)) == 2
        assert [httpx.get(f"{address}/connectors").json() for address in server.addresses] == [[], []]
    finally:
        server.stop()


def test_a_listener_without_a_host_answers_everywhere() -> None:
    server = new_server("http://:0")
    server.start()
    try:
        assert server.addresses[0].startswith("http://localhost:")
        assert httpx.get(f"{server.addresses[0]}/connectors").json() == []
    finally:
        server.stop()


def test_a_port_that_is_taken_is_an_error_that_says_so_and_leaves_nothing_bound() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        server = new_server(f"http://127.0.0.1:0,http://127.0.0.1:{port}")
        with pytest.raises(MissingToolError, match=rf"Cannot listen on 127\.0\.0\.1:{port}: .*set another in 'listeners'"):
            server.start()
        assert all(each.fileno() == -1 for group in server._groups for each in group._sockets)


def test_stop_lets_a_running_request_finish() -> None:
    entered, leave = threading.Event(), threading.Event()

    class SlowHerder(Herder):
        def configs(self) -> dict[str, Mapping[str, str]]:
            entered.set()
            assert leave.wait(10)
            return {"late": {}}

    worker = WorkerConfig.of({})
    server = new_server(herder=SlowHerder(worker, MemoryConfigBackingStore(), MemoryStatusBackingStore()))
    server.start()
    address, answers = server.addresses[0], []
    request = threading.Thread(target=lambda: answers.append(httpx.get(f"{address}/connectors", timeout=20).json()))
    request.start()
    assert entered.wait(10)
    stop = threading.Thread(target=server.stop)
    stop.start()
    leave.set()
    request.join(10)
    stop.join(10)
    assert answers == [["late"]]
    assert not stop.is_alive()


def test_stop_without_start_is_nothing() -> None:
    new_server().stop()


@pytest.mark.parametrize(
    ("listener", "expected"),
    [
        ("http://:8083", ("http", "", 8083)),
        (" HTTPS://host:1 ", ("https", "host", 1)),
        ("http://[::1]:8083", ("http", "::1", 8083)),
        ("http://127.0.0.1:0", ("http", "127.0.0.1", 0)),
    ],
)
def test_listeners_are_read_as_kafka_writes_them(listener: str, expected: tuple[str, str, int]) -> None:
    assert parse_listener(listener) == Listener(*expected)


@pytest.mark.parametrize(
    "listener", ["", "8083", "localhost:8083", "http://host", "http://host:x", "http://h:70000", "ftp://:8443"]
)
def test_a_listener_that_cannot_be_served_is_refused(listener: str) -> None:
    with pytest.raises(ConfigError, match="for configuration listeners: "):
        parse_listener(listener)


def test_the_cluster_is_asked_until_it_answers_once(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([MissingToolError("no broker"), "id"])

    def ask(_worker: WorkerConfig) -> str:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(cluster, "_ask", ask)
    cluster_id = ClusterId(WorkerConfig.of({}))
    assert [cluster_id(), cluster_id(), cluster_id()] == [None, "id", "id"]
