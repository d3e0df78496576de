"""Many clients that change one connector at the same time, through two REST servers."""

from __future__ import annotations

import functools
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import httpx
import pytest

from support.eventually import LIMIT, eventually
from support.faults.cluster import Cluster
from support.faults.rest import RestServer
from support.faults.rows import NewRow
from support.faults.worker_group import SOURCE, WorkerGroup

pytestmark = pytest.mark.kafka

CLIENTS, ROUNDS = 20, 3
_MARKED = ("topic", "header.converter.mark", "predicates.note")


@pytest.fixture
def servers(group: WorkerGroup) -> Iterator[list[RestServer]]:
    with ExitStack() as stack:
        yield [stack.enter_context(RestServer(group.worker_file, group.folder / f"rest-{number}")) for number in range(2)]


def config_of(client: int, turn: int) -> dict[str, str]:
    """Return a config whose values all name one client."""
    return {"connector.class": SOURCE, **dict.fromkeys(_MARKED, f"client-{client}-{turn}"), "tasks.max": str(client + 1)}


def is_whole(config: Mapping[str, str]) -> bool:
    owner = config["topic"]
    return {config[key] for key in _MARKED} == {owner} and owner.split("-")[1] == str(int(config["tasks.max"]) - 1)


def has(server: RestServer, name: str, config: Mapping[str, str]) -> bool:
    return server.client.config(name) == config


def at_once(servers: list[RestServer], method: str, path: str, turn: int, name: str) -> list[httpx.Response]:
    """Send all clients' requests at the same time, half of them to each server; return the responses."""
    barrier = threading.Barrier(CLIENTS)

    def ask(client: int) -> httpx.Response:
        config = config_of(client, turn)
        body = {"name": name, "config": config} if method == "POST" else config
        barrier.wait(LIMIT)
        return http.request(method, f"{servers[client % 2].url}{path}", json=body)

    with httpx.Client(timeout=60) as http, ThreadPoolExecutor(CLIENTS) as pool:
        return list(pool.map(ask, range(CLIENTS)))


@pytest.mark.matrix(35)
def test_twenty_clients_that_put_configs_at_once_leave_one_whole_config(
    group: WorkerGroup, servers: list[RestServer], cluster: Cluster, row: NewRow
) -> None:
    made = row(f"{CLIENTS} clients PUT at once, {ROUNDS} times, two REST servers", "created once, no half config, all agree")
    codes: Counter[int] = Counter()
    path = f"/connectors/{group.name}/config"
    for turn in range(ROUNDS):
        answers = at_once(servers, "PUT", path, turn, group.name)
        codes.update(each.status_code for each in answers)
        assert all(is_whole(each.json()["config"]) for each in answers if each.is_success)
    assert codes == Counter({200: CLIENTS * ROUNDS - 1, 201: 1}), codes
    config_key = f"connector-{group.name}".encode()
    written = [each for each in cluster.messages(group.worker.config_topic) if each.key == config_key]
    assert len(written) == CLIENTS * ROUNDS, "each request is one record"
    agreed = [httpx.get(f"{server.url}{path}").json() for server in servers]
    eventually(lambda: group.herder.info(group.name).config == agreed[0], what="what this process reads")
    assert agreed[0] == agreed[1]
    assert is_whole(agreed[0])
    made.seen = f"{codes[201]} x 201, {codes[200]} x 200, {len(written)} records, all whole"


@pytest.mark.matrix(35)
def test_twenty_clients_that_create_one_connector_create_it_once(
    group: WorkerGroup, servers: list[RestServer], row: NewRow
) -> None:
    made = row(f"{CLIENTS} clients POST at once, two REST servers", "one 201, the others 409; its config stands")
    answers = at_once(servers, "POST", "/connectors", 0, group.name)
    codes = Counter(each.status_code for each in answers)
    assert codes == Counter({201: 1, 409: CLIENTS - 1}), codes
    [created] = [each.json()["config"] for each in answers if each.status_code == 201]
    assert is_whole(created)
    for server in servers:
        eventually(functools.partial(has, server, group.name, created), what=f"the config at {server.url}")
    made.seen = f"{codes[201]} x 201, {codes[409]} x 409"
