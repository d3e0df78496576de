"""The standalone REST server."""

from __future__ import annotations

import socket
import threading

import httpx
import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConfigError, MissingToolError
from sluiceway.herder import Herder
from sluiceway.herder.overview import Overview
from sluiceway.herder.plugin_classes import described
from sluiceway.rest.client import ConnectClient
from sluiceway.rest.server import RestServer
from sluiceway.storage.memory import MemoryConfigBackingStore, MemoryStatusBackingStore
from support.eventually import LIMIT
from unit.rest.servers import new_server


def test_a_method_that_http_does_not_know_is_answered_like_any_other(server: RestServer) -> None:
    answer = httpx.request("FOO", f"{server.addresses[0]}/connectors")
    assert answer.json() == {"error_code": 405, "message": "HTTP 405 Method Not Allowed"}
    assert httpx.request("FOO", f"{server.addresses[0]}/nope").json()["error_code"] == 404


def test_the_root_tells_the_clusters_id(client: ConnectClient) -> None:
    assert client.root()["kafka_cluster_id"] == "some-cluster"


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


@pytest.mark.parametrize(
    ("key", "name", "meant"),
    [
        ("key.converter", "JsonConvertr", "JsonConverter"),
        (
            "value.converter",
            "org.apache.kafka.connect.storage.StringConvertor",
            "org.apache.kafka.connect.storage.StringConverter",
        ),
        ("header.converter", "SimpleHeaderConvertr", "SimpleHeaderConverter"),
    ],
)
def test_a_converter_that_does_not_exist_is_refused_at_the_start(key: str, name: str, meant: str) -> None:
    worker = WorkerConfig.of({"listeners": "http://127.0.0.1:0", key: name})
    herder = Herder(worker, MemoryConfigBackingStore(), MemoryStatusBackingStore())
    with pytest.raises(
        ConfigError, match=rf"Invalid value {name} for configuration {key}: Class {name} could not be found\."
    ) as error:
        RestServer(worker, lambda: herder)
    assert described(error.value).endswith(f" Did you mean {meant}?")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("exactly.once.source.support", "enable"),
        ("topic.creation.enable", "maybe"),
        ("connector.client.config.override.policy", "Al"),
    ],
)
def test_a_worker_value_that_only_some_connectors_need_is_refused_at_the_start(key: str, value: str) -> None:
    worker = WorkerConfig.of({"listeners": "http://127.0.0.1:0", key: value})
    herder = Herder(worker, MemoryConfigBackingStore(), MemoryStatusBackingStore())
    with pytest.raises(ConfigError, match=f"Invalid value {value} for configuration {key}: "):
        RestServer(worker, lambda: herder)


def test_a_port_that_is_taken_is_an_error_that_says_so_and_leaves_nothing_bound() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        server = new_server(f"http://127.0.0.1:0,http://127.0.0.1:{port}")
        with pytest.raises(MissingToolError, match=rf"Cannot listen on 127\.0\.0\.1:{port}: .*set another port in 'listeners'"):
            server.start()
        assert all(each.fileno() == -1 for group in server._groups for each in group._sockets)


def test_stop_lets_a_running_request_finish() -> None:
    entered, leave = threading.Event(), threading.Event()

    class SlowHerder(Herder):
        def overview(self) -> Overview:
            entered.set()
            assert leave.wait(LIMIT)
            return super().overview()

    worker, config = WorkerConfig.of({}), MemoryConfigBackingStore()
    config.put_connector("late", {})
    server = new_server(herder=SlowHerder(worker, config, MemoryStatusBackingStore()))
    server.start()
    address, answers = server.addresses[0], []
    request = threading.Thread(target=lambda: answers.append(httpx.get(f"{address}/connectors", timeout=20).json()))
    request.start()
    assert entered.wait(LIMIT)
    stop = threading.Thread(target=server.stop)
    stop.start()
    leave.set()
    request.join(LIMIT)
    stop.join(10)
    assert answers == [["late"]]
    assert not stop.is_alive()


def test_stop_without_start_is_nothing() -> None:
    new_server().stop()
