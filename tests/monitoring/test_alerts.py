"""A real Prometheus scrapes ten connectors: each query of the boards runs; each alert fires with its fault and ends after it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest

import support
from sluiceway.spark.session import local_conf
from support.bad_records import tolerant
from support.connect_cluster import ConnectCluster
from support.driver import submitted_driver
from support.engine_connectors import file_sink, file_source, lines
from support.eventually import LIMIT, eventually
from support.kafka import Kafka
from support.monitored import SINK, Faults
from support.peer import put_config, rest_answers, restart, wait_for_state
from support.prometheus import BOARDS, Prometheus, names_in, program, targets

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.long,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(program("prometheus") is None, reason="no Prometheus: make test-metrics fetches it"),
]

PAIRS = 4
LINES = 200
WORKER = {
    "sluiceway.heartbeat.interval.ms": "1000",
    "offset.flush.interval.ms": "500",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
}
JSON = {"value.converter": "org.apache.kafka.connect.json.JsonConverter", "value.converter.schemas.enable": "false"}


class Stack:
    """Ten connectors on one driver, a REST API, and a Prometheus that scrapes it."""

    def __init__(self, bootstrap: str, folder: Path, prefix: str) -> None:
        self.kafka = Kafka(bootstrap)
        self.folder = folder
        self.prefix = prefix
        self.faults = Faults(folder)
        self.cluster = ConnectCluster(bootstrap, prefix, folder / "cluster", WORKER)
        self.prometheus = Prometheus(folder / "prometheus", [self.cluster.rest.removeprefix("http://")])

    def create(self) -> None:
        configs = {}
        for number in range(PAIRS):
            file, topic = self.folder / f"lines-{number}.txt", self.topic(f"lines-{number}")
            file.write_text("".join(f"line {line}\n" for line in range(LINES)))
            configs[f"source-{number}"] = file_source(f"source-{number}", topic, file)
            configs[f"sink-{number}"] = file_sink(f"sink-{number}", topic, self.folder / f"out-{number}.txt")
        slow = {"consumer.override.max.poll.records": "50"}
        configs["faulty"] = {"connector.class": SINK, "topics": self.topic("faulty"), "folder": str(self.folder), **slow}
        queue = tolerant(self.topic("dead"))
        configs["tolerant"] = {**file_sink("tolerant", self.topic("json"), self.folder / "json.txt"), **JSON, **queue}
        for topic in ("faulty", "json"):
            self.kafka.create(self.topic(topic))
        for name, config in configs.items():
            put_config(self.cluster.rest, name, {**config, "name": name})
        for name in configs:
            wait_for_state(self.cluster.rest, name, "RUNNING")
        eventually(self._copied, what=f"{LINES} lines in {PAIRS} files")

    def topic(self, name: str) -> str:
        return f"{self.prefix}-{name}"

    def fires(self, alert: str, within: float = LIMIT, **labels: str) -> None:
        eventually(lambda: self.prometheus.firing(alert, **labels), within=within, what=f"{alert} fires")
        print(f"{alert} fires {labels}")

    def ends(self, alert: str, within: float = LIMIT) -> None:
        eventually(lambda: not self.prometheus.firing(alert), within=within, what=f"{alert} ends")
        print(f"{alert} has ended")

    def kill_driver(self) -> None:
        pid = self.cluster.driver.status().pid
        assert pid is not None
        driver = psutil.Process(pid)
        for process in [driver, *driver.children(recursive=True)]:
            process.kill()

    def _copied(self) -> bool:
        return all(len(lines(self.folder / f"out-{number}.txt")) == LINES for number in range(PAIRS))


@pytest.fixture(scope="module")
def stack(kafka_bootstrap: str, unique: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    made = Stack(kafka_bootstrap, tmp_path_factory.mktemp("monitored"), unique("monitored"))
    with pytest.MonkeyPatch.context() as patch:
        paths = [str(Path(support.__file__).parent.parent), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))  # for the connector in support.monitored
        with made.prometheus, made.cluster:
            made.create()
            yield made


@pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.stem)
def test_each_query_of_a_board_finds_what_it_shows(stack: Stack, path: Path) -> None:
    for title, query in targets(json.loads(path.read_text())):
        query = query.replace("$__rate_interval", "30s").replace("$connector", ".*")
        if names_in(query) == {"ALERTS"}:
            found = stack.prometheus.query(query)
        else:
            found = eventually(partial(stack.prometheus.query, query), what=f"series of {title}: {query}")
        now = time.time()
        over_time = stack.prometheus.query(query, start=str(now - 60), end=str(now), step="5")
        print(f"{title:45} {len(found):3} series now, {len(over_time):3} in a minute")


def test_no_alert_fires_while_all_is_well(stack: Stack) -> None:
    assert stack.prometheus.query('ALERTS{alertstate="firing"}') == []


def test_a_task_that_fails(stack: Stack) -> None:
    stack.faults.begin("failing")
    stack.kafka.produce(stack.topic("faulty"), "x")
    stack.fires("ConnectTaskFailed", connector="faulty", task="0")
    stack.faults.end("failing")
    restart(stack.cluster.rest, "faulty")
    stack.ends("ConnectTaskFailed")


def test_a_connector_that_fails(stack: Stack) -> None:
    stack.faults.begin("refusing")
    restart(stack.cluster.rest, "faulty")
    stack.fires("ConnectConnectorFailed", connector="faulty")
    stack.faults.end("refusing")
    restart(stack.cluster.rest, "faulty")
    stack.ends("ConnectConnectorFailed")
    wait_for_state(stack.cluster.rest, "faulty", "RUNNING")


def test_a_sink_that_hangs(stack: Stack) -> None:
    stack.faults.begin("hanging")
    stack.kafka.produce(stack.topic("faulty"), "x")
    stack.fires("ConnectNoProgress", connector="faulty", task="0")
    stack.faults.end("hanging")
    stack.ends("ConnectNoProgress")


def test_a_sink_that_is_too_slow(stack: Stack) -> None:
    stack.faults.begin("slow")

    def fires() -> bool:
        stack.kafka.produce(stack.topic("faulty"), *["x"] * 200)
        return stack.prometheus.firing("ConnectSinkLagGrows", connector="faulty")

    eventually(fires, what="ConnectSinkLagGrows fires")
    stack.faults.end("slow")
    stack.ends("ConnectSinkLagGrows")


def test_records_in_a_dead_letter_queue(stack: Stack) -> None:
    stack.kafka.produce(stack.topic("json"), '{"good": 1}', "no JSON")
    stack.fires("ConnectDeadLetters", connector="tolerant")
    stack.ends("ConnectDeadLetters")


def test_a_second_driver(stack: Stack) -> None:
    second = submitted_driver(
        "source-0", stack.cluster.worker_file, stack.folder / "second", master="local[4]", conf=local_conf()
    )
    second.start()
    try:
        stack.fires("ConnectLeaseLost", connector="source-0")
    finally:
        second.stop(60)
    stack.ends("ConnectLeaseLost")


def test_a_driver_that_is_killed(stack: Stack) -> None:
    stack.kill_driver()
    stack.fires("ConnectHeartbeatLost", connector="sink-0")
    stack.cluster.driver.start()
    stack.ends("ConnectHeartbeatLost")
    stack.ends("ConnectLeaseLost")


def test_a_rest_api_that_ends(stack: Stack) -> None:
    stack.cluster.rest_process.stop()
    stack.fires("ConnectMetricsMissing")
    stack.cluster.rest_process.start()
    stack.cluster.rest_process.wait_until(lambda: rest_answers(stack.cluster.rest), 90)
    stack.ends("ConnectMetricsMissing")
