"""Fixtures of the REST API's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sluiceway.api import TopicPartition
from sluiceway.config.worker import WorkerConfig
from sluiceway.herder import Herder
from sluiceway.rest import cluster_id
from sluiceway.rest.client import ConnectClient
from sluiceway.rest.server import RestServer
from sluiceway.storage.memory import MemoryConfigBackingStore, MemoryStatusBackingStore
from support.rest_replay import Connect
from unit.rest.servers import FREE_PORT, PARTITION, Start, new_server


@pytest.fixture
def connect() -> Connect:
    return Connect(places=[PARTITION, TopicPartition("t", 1)])


@pytest.fixture
def start() -> Iterator[Start]:
    servers: list[RestServer] = []

    def start(**properties: str) -> RestServer:
        worker = WorkerConfig.of({"listeners": FREE_PORT} | {key.replace("__", "."): value for key, value in properties.items()})
        herder = Herder(worker, MemoryConfigBackingStore(), MemoryStatusBackingStore())
        server = RestServer(worker, lambda: herder)
        servers.append(server)
        server.start()
        return server

    yield start
    for server in servers:
        server.stop()


@pytest.fixture(autouse=True)
def no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_id, "_lookup", lambda _worker: "some-cluster")


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
