"""Many clients of two REST servers that write at the same time: each change is stored completely or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import httpx
import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.herder import Herder
from sluiceway.herder.loggers import Loggers
from sluiceway.rest.server import RestServer
from sluiceway.storage.factory import open_stores

pytestmark = pytest.mark.kafka

SOURCE = {"connector.class": "FileStreamSource", "file": "/f", "topic": "t"}
CLIENTS = 20
ROUNDS = 3


class Server:
    """A REST server with its own stores, like another process's."""

    def __init__(self, worker: WorkerConfig, stack: ExitStack) -> None:
        self.stores = stack.enter_context(open_stores(worker))
        self.loggers = Loggers()
        herder = Herder(worker, self.stores.config, self.stores.status, self.stores.offsets)
        server = RestServer(worker, lambda: herder, self.loggers)
        server.start()
        stack.callback(server.stop)
        self.url = server.addresses[0]


@pytest.fixture
def servers(kafka_bootstrap: str, unique: Callable[[str], str]) -> Iterator[list[Server]]:
    properties = {"bootstrap.servers": kafka_bootstrap, "group.id": unique("group"), "offset.storage.partitions": "1"}
    properties |= {"listeners": "http://127.0.0.1:0", "status.storage.partitions": "1"}
    for kind in ("config", "offset", "status"):
        properties |= {f"{kind}.storage.topic": unique(kind), f"{kind}.storage.replication.factor": "1"}
    with ExitStack() as stack:
        yield [Server(WorkerConfig.of(properties), stack) for _ in range(2)]


def agreed(servers: list[Server], path: str) -> object:
    for server in servers:
        server.stores.config.refresh()
    answers = [httpx.get(server.url + path).json() for server in servers]
    assert answers[0] == answers[1]
    return answers[0]


def test_twenty_clients_of_two_servers_leave_complete_configs(servers: list[Server]) -> None:
    """All values of a client's config name the client, so a mixture is detected."""
    httpx.post(f"{servers[0].url}/connectors", json={"name": "c", "config": SOURCE}).raise_for_status()

    def client(number: int) -> list[int]:
        with httpx.Client(base_url=servers[number % 2].url, timeout=120) as http:
            return [
                http.put("/connectors/c/config", json=SOURCE | {f"k{key}": f"{number}-{turn}" for key in range(20)}).status_code
                for turn in range(ROUNDS)
            ]

    with ThreadPoolExecutor(CLIENTS) as pool:
        codes = [code for each in pool.map(client, range(CLIENTS)) for code in each]
    assert set(codes) <= {200, 409}
    assert codes.count(200) >= CLIENTS
    config = agreed(servers, "/connectors/c/config")
    assert isinstance(config, dict)
    assert len({config[f"k{key}"] for key in range(20)}) == 1


def test_no_patch_of_twenty_clients_is_lost(servers: list[Server]) -> None:
    httpx.post(f"{servers[0].url}/connectors", json={"name": "c", "config": SOURCE}).raise_for_status()

    def client(number: int) -> bool:
        with httpx.Client(base_url=servers[number % 2].url, timeout=120) as http:
            return http.patch("/connectors/c/config", json={f"client.{number}": json.dumps(number)}).status_code == 200

    with ThreadPoolExecutor(CLIENTS) as pool:
        done = [number for number, well in enumerate(pool.map(client, range(CLIENTS))) if well]
    config = agreed(servers, "/connectors/c/config")
    assert isinstance(config, dict)
    assert {key for key in config if key.startswith("client.")} == {f"client.{number}" for number in done}
    assert len(done) >= CLIENTS // 2


def test_a_log_level_for_the_cluster_reaches_the_other_server(servers: list[Server]) -> None:
    answer = httpx.put(f"{servers[0].url}/admin/loggers/org.test.levels?scope=cluster", json={"level": "DEBUG"})
    assert answer.status_code == 204
    servers[1].stores.config.refresh()
    assert httpx.get(f"{servers[1].url}/admin/loggers/org.test.levels").json()["level"] == "DEBUG"
    assert "org.test.levels" in servers[1].loggers.all()
