"""SparkSink and SparkSource on a driver with a local Spark master: files and tables by DataFrames."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow.dataset
import pyarrow.parquet
import pytest

from sluiceway.herder import Herder
from sluiceway.stack.process import BackgroundProcess
from sluiceway.storage.factory import open_stores
from support.driver import submitted_driver, worker_of, worker_properties, write_properties
from support.eventually import eventually
from support.kafka import Kafka

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

JSON = "org.apache.kafka.connect.json.JsonConverter"
_SCHEMA = {
    "type": "struct",
    "optional": False,
    "fields": [{"field": "id", "type": "int64", "optional": False}, {"field": "city", "type": "string", "optional": True}],
}


class Application:
    """The driver of one connector."""

    def __init__(self, herder: Herder, name: str, start: Callable[[], BackgroundProcess]) -> None:
        self.herder = herder
        self.name = name
        self.start = start
        self.driver = start()

    def states(self) -> tuple[str, list[str]]:
        status = self.herder.status(self.name)
        return status.connector.state.value, [task.state.value for task in status.tasks.values()]

    def eventually_states(self, *wanted: str, within: float = 90) -> None:
        eventually(lambda: self.states()[1] == list(wanted), within=within, what=f"{wanted}\n{self.driver.log_tail(60)}")

    def offsets(self) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
        return [(dict(each.partition), dict(each.offset)) for each in self.herder.offsets(self.name).offsets]


Run = Callable[..., Application]


@pytest.fixture
def run(kafka_bootstrap: str, unique: Callable[[str], str], tmp_path: Path) -> Iterator[Run]:
    """Create a connector and start its driver."""
    with contextlib.ExitStack() as stack:

        def create(config: Mapping[str, str], **settings: str) -> Application:
            properties = worker_properties(kafka_bootstrap, unique("frames"), **settings)
            worker_file = write_properties(tmp_path / "worker.properties", properties)
            stores = stack.enter_context(open_stores(worker_of(properties)))
            herder = Herder(worker_of(properties), stores.config, stores.status, stores.offsets)
            name = unique("frames")
            herder.create(name, config)
            number = iter(range(100))

            def start() -> BackgroundProcess:
                folder = tmp_path / f"driver-{next(number)}"
                driver = submitted_driver(name, worker_file, folder, master="local[4]")
                stack.callback(driver.stop)
                driver.start()
                return driver

            return Application(herder, name, start)

        yield create


def envelope(number: int) -> bytes:
    return json.dumps({"schema": _SCHEMA, "payload": {"id": number, "city": f"c{number % 7}"}}).encode()


def ids(folder: Path) -> list[int]:
    table = pyarrow.dataset.dataset(sorted(folder.rglob("*.parquet"))).to_table() if list(folder.rglob("*.parquet")) else None
    return [] if table is None else sorted(table.column("id").to_pylist())


def test_a_sink_writes_rounds_with_a_spark_format_and_commits_their_offsets(
    run: Run, kafka: Kafka, unique: Callable[[str], str], tmp_path: Path
) -> None:
    topic = kafka.create(unique("orders"), 2)
    for partition in range(2):
        kafka.produce(topic, *(envelope(partition + 2 * n) for n in range(500)), partition=partition)
    kafka.produce(topic, b"no json", partition=1)
    out, dlq = tmp_path / "out", unique("dlq")
    config = {"connector.class": "SparkSink", "topics": topic, "format": "parquet", "path": str(out), "partition.by": "city"}
    config |= {"value.converter": JSON, "rotate.interval.ms": "500", "flush.size": "400", "errors.tolerance": "all"}
    config |= {"errors.deadletterqueue.topic.name": dlq, "errors.deadletterqueue.topic.replication.factor": "1"}
    app = run(config)
    app.eventually_states("RUNNING")
    eventually(lambda: ids(out) == list(range(1000)), within=90, what=f"the rows\n{app.driver.log_tail(60)}")
    group = f"connect-{app.name}"
    eventually(lambda: kafka.committed(group) == {(topic, 0): 500, (topic, 1): 501}, within=20, what="the group's offsets")
    assert len(kafka.read(dlq, 1)) == 1
    assert {path.name.partition("=")[0] for path in out.iterdir() if path.is_dir()} == {"city"}

    app.herder.pause(app.name)
    app.eventually_states("PAUSED", within=10)
