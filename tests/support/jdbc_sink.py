"""Runs a JDBC sink task, in the test or in a process of its own, and makes records for it."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import psutil
from confluent_kafka import Producer

from sluiceway.api import SinkRecord, TopicPartition
from sluiceway.connectors.jdbc.sink.task import JdbcSinkTask
from sluiceway.converters.json_converter import JsonConverter
from sluiceway.data import INT64_SCHEMA, OPTIONAL_STRING_SCHEMA, Schema, Struct
from sluiceway.testing import MemorySinkContext
from support.database import DatabaseForTest
from support.engine import RunningTask
from support.eventually import LIMIT, eventually
from support.processes import fresh_processes

KEY = Schema.struct({"id": INT64_SCHEMA})
VALUE = Schema.struct({"id": INT64_SCHEMA, "name": OPTIONAL_STRING_SCHEMA})
KEYED = {"pk.mode": "record_key", "auto.create": "true"}
UPSERT = {**KEYED, "insert.mode": "upsert", "delete.enabled": "true"}


class Sink:
    """A started task with its config and context."""

    def __init__(self, database: DatabaseForTest, partitions: Sequence[TopicPartition], reports: bool, config: Mapping[str, str]):
        self.database = database
        self.config = {"name": "sink", **database.config, **config}
        self.context = MemorySinkContext(self.config, partitions, reports=reports)
        self.task = JdbcSinkTask()
        self.task.initialize(self.context)
        self.task.start(self.config)
        self.task.open(partitions)

    def put(self, *records: SinkRecord) -> None:
        self.task.put(records)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self.database.execute(sql)


@contextmanager
def sink(
    database: DatabaseForTest,
    config: Mapping[str, str] | None = None,
    topic: str = "people",
    *,
    reports: bool = False,
    partitions: int = 1,
    **more: str,
) -> Iterator[Sink]:
    """Start a task with the keys of ``config`` and those of keyword arguments, which have underscores for dots."""
    places = [TopicPartition(topic, number) for number in range(partitions)]
    made = Sink(database, places, reports, {key.replace("_", "."): value for key, value in {**(config or {}), **more}.items()})
    try:
        yield made
    finally:
        made.task.stop()


def record(
    offset: int,
    key: Any = None,
    value: Any = None,
    *,
    topic: str = "people",
    partition: int = 0,
    schema: Schema = VALUE,
    key_schema: Schema | None = KEY,
) -> SinkRecord:
    """Return a record; mappings become structs, and a key None means no key."""
    if isinstance(key, Mapping) and key_schema is not None:
        key = Struct(key_schema, key)
    if isinstance(value, Mapping):
        value = Struct(schema, value)
    return SinkRecord(
        topic, partition, offset, value, None if value is None else schema, key, None if key is None else key_schema
    )


def person(offset: int, number: int, name: str | None, **more: Any) -> SinkRecord:
    """Return a record with a key and a name."""
    return record(offset, {"id": number}, {"id": number, "name": name}, **more)


def tombstone(offset: int, number: int, **more: Any) -> SinkRecord:
    """Return a tombstone."""
    return record(offset, {"id": number}, **more)


JSON = dict.fromkeys(("key.converter", "value.converter"), "org.apache.kafka.connect.json.JsonConverter")
# With a static member, a killed process is replaced at once instead of after the group's session timeout.
STATIC_MEMBER = {
    "consumer.override.group.instance.id": "only",
    "consumer.override.session.timeout.ms": "20000",
}


def fill(bootstrap: str, records: Iterable[SinkRecord], **options: str) -> None:
    """Produce records to their topics and partitions, as JsonConverter writes them with schemas, and with more options."""
    converter = JsonConverter()
    converter.configure({"schemas.enable": "true", **options})
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20})
    for each in records:
        key = converter.from_connect_data(each.topic, each.key_schema, each.key) if each.key is not None else None
        value = None if each.value is None else converter.from_connect_data(each.topic, each.value_schema, each.value)
        while True:
            try:
                producer.produce(each.topic, value, key, each.kafka_partition)
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(60) == 0


def run_task(config: dict[str, str], bootstrap: str, bounded: bool) -> None:
    """Run a task until it ends; the entry point of ``TaskProcess``."""
    with RunningTask(config, {"bootstrap.servers": bootstrap, "offset.flush.interval.ms": "500"}, bounded=bounded) as task:
        result = task.join(within=600)
        print(result.trace or "", file=sys.stderr, flush=True)
        sys.exit(1 if result.failed else 0)


class TaskProcess:
    """A task in a process of its own, which a test can kill. Leaving the context kills it if it still runs."""

    def __init__(self, config: Mapping[str, str], bootstrap: str, *, bounded: bool = False) -> None:
        context = fresh_processes()
        self._process = context.Process(target=run_task, args=(dict(config), bootstrap, bounded), daemon=True)

    def __enter__(self) -> TaskProcess:
        self._process.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill(self) -> None:
        """Kill the process with SIGKILL."""
        self._process.kill()
        self._process.join()

    def finish(self, within: float = LIMIT) -> None:
        """Wait until a bounded task has read to the end of the topic."""
        self._process.join(within)
        assert self._process.exitcode == 0, f"the task's process: {self._process.exitcode}"

    @property
    def alive(self) -> bool:
        return self._process.is_alive()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None, "the process has not been started"
        return self._process.pid

    @property
    def resident(self) -> int:
        """The resident memory in bytes."""
        return psutil.Process(self._process.pid).memory_info().rss


def kill_at_random(
    settings: Mapping[str, str], bootstrap: str, progress: Callable[[], int], chance: random.Random, longest: float
) -> float:
    """Start a task, kill it at most ``longest`` seconds after ``progress`` has grown, and return the seconds until that."""
    before, started = progress(), time.monotonic()
    with TaskProcess(settings, bootstrap) as task:
        eventually(lambda: progress() > before or not task.alive, what="the first record that is written")
        assert task.alive
        begun = time.monotonic() - started
        time.sleep(chance.uniform(0, longest))  # where to kill
        task.kill()
    return begun
