"""The REST server process on a real Kafka."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from sluiceway.config.properties import read_properties
from sluiceway.config.worker import WorkerConfig
from sluiceway.kafka.admin import partition_count
from sluiceway.kafka.clients import admin_client
from sluiceway.rest.client import ConnectClient, RestError
from sluiceway.storage.factory import Stores, open_stores
from sluiceway.storage.model import State, Status, TargetState, TaskId
from support.eventually import LIMIT, eventually
from support.kafka import Kafka

pytestmark = pytest.mark.kafka

SOURCE = {"connector.class": "FileStreamSource", "file": "/f", "topic": "t"}
HEARTBEAT_TIMEOUT = 1.0


@pytest.fixture
def worker_file(kafka_bootstrap: str, unique: Callable[[str], str], tmp_path: Path) -> Path:
    properties = {
        "bootstrap.servers": kafka_bootstrap,
        "group.id": unique("group"),
        "listeners": "http://127.0.0.1:0",
        "offset.storage.partitions": "2",
        "sluiceway.heartbeat.timeout.ms": str(int(HEARTBEAT_TIMEOUT * 1000)),
    }
    for kind in ("config", "offset", "status"):
        properties |= {f"{kind}.storage.topic": unique(kind), f"{kind}.storage.replication.factor": "1"}
    file = tmp_path / "worker.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    return file


class RestProcess:
    """``sluiceway rest`` on a free port."""

    def __init__(self, worker_file: Path, log: Path) -> None:
        self._log = log
        command = [sys.executable, "-m", "sluiceway.cli.main", "rest", str(worker_file)]
        with log.open("w") as output:
            self.process = subprocess.Popen(command, stderr=output, stdout=output)
        eventually(
            lambda: "REST API is listening on http" in log.read_text() or self.process.poll() is not None,
            what=f"a listening REST server (log: {log})",
        )
        assert self.process.poll() is None, log.read_text()
        self.url = log.read_text().split("REST API is listening on ")[1].split()[0]
        self.client = ConnectClient(self.url)

    def terminate(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(LIMIT)

    def close(self) -> None:
        self.client.close()
        self.process.kill()
        self.process.wait()


@pytest.fixture
def start_rest(worker_file: Path, tmp_path: Path) -> Iterator[Callable[[], RestProcess]]:
    started: list[RestProcess] = []

    def start() -> RestProcess:
        started.append(RestProcess(worker_file, tmp_path / f"rest-{len(started)}.log"))
        return started[-1]

    yield start
    for each in started:
        each.close()


@pytest.fixture
def stores(worker_file: Path) -> Iterator[Stores]:
    """Stores like those of another process: a driver's, or a second worker's."""
    with open_stores(WorkerConfig.of(read_properties(worker_file))) as stores:
        yield stores


def state(rest: RestProcess, name: str) -> str:
    return str(rest.client.status(name)["connector"]["state"])


def test_rest_writes_to_the_topics_and_serves_other_writers_changes(
    start_rest: Callable[[], RestProcess], stores: Stores
) -> None:
    rest = start_rest()
    rest.client.create("a", SOURCE, "STOPPED")
    entry = stores.config.refresh().entry("a")
    assert entry is not None
    assert (dict(entry.config or {}), entry.target_state) == (SOURCE | {"name": "a"}, TargetState.STOPPED)
    stores.status.refresh()
    written = stores.status.connector("a")
    assert written is not None
    assert written.state is State.STOPPED

    stores.config.put_connector("b", SOURCE | {"name": "b"})
    eventually(lambda: rest.client.connectors() == ["a", "b"])
    stores.config.put_task_configs("b", [{"task.class": "T"}])
    eventually(lambda: len(rest.client.tasks("b")) == 1)


def test_a_connector_just_created_by_another_process_can_be_paused(start_rest: Callable[[], RestProcess], stores: Stores) -> None:
    rest = start_rest()
    for number in range(5):
        stores.config.put_connector(f"c{number}", SOURCE)
        rest.client.pause(f"c{number}")
        assert state(rest, f"c{number}") == "PAUSED"


def test_a_connector_is_unassigned_without_heartbeats_and_running_again_with_the_next(
    start_rest: Callable[[], RestProcess], stores: Stores
) -> None:
    rest = start_rest()
    rest.client.create("a", SOURCE)
    assert state(rest, "a") == "UNASSIGNED"
    running = Status(State.RUNNING, "driver:1", 1, version="1")
    stores.config.put_task_configs("a", [{"task.class": "T"}])
    stores.status.put_task(TaskId("a", 0), running)
    stores.status.put_connector("a", running)
    eventually(lambda: state(rest, "a") == "RUNNING", within=HEARTBEAT_TIMEOUT)
    heard = time.monotonic()
    eventually(lambda: state(rest, "a") == "UNASSIGNED", within=HEARTBEAT_TIMEOUT + 5)
    assert time.monotonic() - heard > HEARTBEAT_TIMEOUT / 2
    assert rest.client.status("a")["tasks"] == [{"id": 0, "state": "UNASSIGNED", "worker_id": "driver:1", "version": None}]
    stores.status.put_connector("a", running)
    eventually(lambda: state(rest, "a") == "RUNNING", within=HEARTBEAT_TIMEOUT)


def test_two_servers_of_a_cluster_create_a_connector_once(start_rest: Callable[[], RestProcess]) -> None:
    rests = [start_rest(), start_rest()]

    def create(number: int) -> int:
        url = rests[number % 2].url
        return httpx.post(f"{url}/connectors", json={"name": f"n{number // 4}", "config": SOURCE}, timeout=60).status_code

    with ThreadPoolExecutor(4) as pool:
        codes = list(pool.map(create, range(24)))
    assert [sorted(codes[first : first + 4]) for first in range(0, 24, 4)] == [[201, 409, 409, 409]] * 6
    for rest in rests:
        eventually(lambda rest=rest: rest.client.connectors() == [f"n{number}" for number in range(6)])


def test_connectors_outlive_the_server_and_sigterm_ends_it_without_errors(start_rest: Callable[[], RestProcess]) -> None:
    first = start_rest()
    first.client.create("a b", SOURCE)
    first.client.create("gone", SOURCE)
    first.client.delete("gone")
    assert first.terminate() == 0
    second = start_rest()
    assert second.client.connectors() == ["a b"]
    assert second.client.config("a b") == SOURCE | {"name": "a b"}
    with pytest.raises(RestError, match="No status found for connector gone"):
        second.client.status("gone")


def test_the_root_resource_has_the_cluster_id(start_rest: Callable[[], RestProcess], worker_file: Path) -> None:
    expected = admin_client(WorkerConfig.of(read_properties(worker_file))).list_topics(timeout=10).cluster_id
    assert start_rest().client.root()["kafka_cluster_id"] == expected


def test_a_signal_is_written_to_the_topic_that_the_config_names(
    start_rest: Callable[[], RestProcess], stores: Stores, kafka_bootstrap: str, unique: Callable[[str], str]
) -> None:
    rest, kafka, prefix = start_rest(), Kafka(kafka_bootstrap), unique("p")
    config = {"connector.class": "io.debezium.connector.postgresql.PostgresConnector", "topic.prefix": prefix}
    channel = {"signal.enabled.channels": "source,kafka", "signal.kafka.bootstrap.servers": kafka_bootstrap}
    stores.config.put_connector("a", config | channel)
    stores.config.put_connector("b", config | channel | {"signal.kafka.topic": kafka.create(unique("own"), partitions=3)})
    data = {"data-collections": ["public.t"]}
    sent = rest.client.send_signal("a", "execute-snapshot", data)
    assert sent["topic"] == f"{prefix}-signal"
    assert partition_count(kafka.admin, sent["topic"]) == 1
    [message] = kafka.read(sent["topic"], 1)
    assert message.key() == prefix.encode()
    assert json.loads(message.value()) == {"id": sent["id"], "type": "execute-snapshot", "data": data}

    sent = rest.client.send_signal("b", "stop-snapshot", {}, "s1")
    [message] = kafka.read(sent["topic"], 1)
    assert (message.partition(), json.loads(message.value())["id"]) == (0, "s1")
    with pytest.raises(RestError, match="Connector c not found"):
        rest.client.send_signal("c", "stop-snapshot", {})


def test_a_server_that_cannot_use_its_topics_exits_with_an_error(worker_file: Path, kafka_bootstrap: str) -> None:
    with worker_file.open("a") as file:
        file.write("config.storage.replication.factor=3\n")
    command = [sys.executable, "-m", "sluiceway.cli.main", "rest", str(worker_file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "sluiceway: Cannot create topic" in done.stderr
    assert "Traceback" not in done.stderr
