"""Runs connectors without Kafka and Spark, for unit tests."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from typing import TypeVar

from sluiceway.api import (
    SinkConnector,
    SinkRecord,
    SinkTask,
    SourceConnector,
    SourceRecord,
    SourceTask,
    TopicPartition,
    Transform,
)
from sluiceway.api.transform import R
from sluiceway.errors import RetriableError
from sluiceway.runtime.memory import MemoryConnectorContext, MemoryOffsets, MemorySinkContext, MemorySourceContext
from sluiceway.testing.checks import breach
from sluiceway.testing.threads import TaskThread

T = TypeVar("T")

_RETRIES = 10
_PAUSE_SECONDS = 0.01
_NO_HANG = "Let all calls of a task return: pause, stop and commits wait for them"
_POLL_ADVICE = "Wait at most about a second for records, then return None: pause and stop wait for it"


def full_config(connector_class: type, config: Mapping[str, str], tasks_max: int = 1) -> dict[str, str]:
    """Return a connector's config with the common keys added."""
    path = f"{connector_class.__module__}.{connector_class.__qualname__}"
    return {"name": "under-test", "connector.class": path, "tasks.max": str(tasks_max), **config}


class RunningSource:
    """A started source connector with its tasks; a context manager that stops them.

    Each task has a thread of its own for all calls. Errors of the connector and the tasks are raised unchanged. A call that
    hangs raises ContractError after ``seconds``. ``check`` is called with each result of ``poll``.
    """

    def __init__(
        self,
        connector_class: type[SourceConnector],
        config: Mapping[str, str],
        *,
        offsets: MemoryOffsets | None = None,
        tasks_max: int = 1,
        seconds: float = 30.0,
        check: Callable[[object], None] = lambda polled: None,
    ) -> None:
        self._check = check
        self.offsets = MemoryOffsets() if offsets is None else offsets
        self.tasks: list[SourceTask] = []
        self._threads: list[TaskThread] = []
        self._seconds = seconds
        self._polled: dict[int, tuple[SourceRecord, int]] = {}  # the task of each record, by the record's identity
        config = full_config(connector_class, config, tasks_max)
        self.connector = connector_class()
        self.connector.initialize(MemoryConnectorContext(self.offsets))
        self.connector.start(config)
        try:
            for task_config in self.connector.task_configs(tasks_max):
                self._start({**config, **task_config})
        except BaseException as error:
            self.__exit__(None, error)
            raise

    def _start(self, config: Mapping[str, str]) -> None:
        thread, task = TaskThread(), self.connector.task_class()
        self.tasks.append(task)
        self._threads.append(thread)
        task.initialize(MemorySourceContext(config, self.offsets))
        thread.call(task.start, config, seconds=self._seconds, advice=_NO_HANG)

    def poll(self) -> list[SourceRecord]:
        """Poll each task once and return the records."""
        records: list[SourceRecord] = []
        for number, (thread, task) in enumerate(zip(self._threads, self.tasks, strict=True)):
            polled = thread.call(task.poll, seconds=self._seconds, advice=_POLL_ADVICE)
            self._check(polled)
            polled = polled or ()
            self._polled.update((id(record), (record, number)) for record in polled)
            records += polled
        return records

    def read(self, count: int, seconds: float) -> list[SourceRecord]:
        """Poll until there are ``count`` records or ``seconds`` have passed. May return more or fewer records."""
        until = time.monotonic() + seconds
        records = self.poll()
        while len(records) < count and time.monotonic() < until:
            polled = self.poll()
            records += polled
            if not polled:
                time.sleep(_PAUSE_SECONDS)
        return records

    def acknowledge(self, records: Sequence[SourceRecord]) -> None:
        """Notify the tasks that Kafka has acknowledged these records, and store the offsets."""
        for position, record in enumerate(records):
            owner = self._polled[id(record)][1]
            self.call(self.tasks[owner].commit_record, record, 0, position, task=owner)
        self.offsets.store_all(records)
        for number, task in enumerate(self.tasks):
            self.call(task.commit, task=number)

    def call(self, function: Callable[..., T], *arguments: object, task: int = 0) -> T:
        """Call a method on the thread of the task with this number."""
        return self._threads[task].call(function, *arguments, seconds=self._seconds, advice=_NO_HANG)

    def stop_tasks(self) -> None:
        """Stop each task."""
        for number, task in enumerate(self.tasks):
            self.call(task.stop, task=number)

    def __enter__(self) -> RunningSource:
        return self

    def __exit__(self, _type: object = None, error: BaseException | None = None, _trace: object = None) -> None:
        with suppress(Exception) if error is not None else nullcontext():  # report the first error
            try:
                self.stop_tasks()
            finally:
                for thread in self._threads:
                    thread.end()
                self.connector.stop()


def run_source(
    connector_class: type[SourceConnector],
    config: Mapping[str, str],
    *,
    records: int | None = None,
    offsets: MemoryOffsets | None = None,
    tasks_max: int = 1,
    seconds: float = 10.0,
) -> list[SourceRecord]:
    """Start a source, read the first ``records`` records (None: until no records are available), commit, and stop.

    The source starts from ``offsets`` and commits to them: run it twice with the same object to test a restart. Raises
    AssertionError if there are fewer records within ``seconds``, and any error of the connector.
    """
    with RunningSource(connector_class, config, offsets=offsets, tasks_max=tasks_max) as source:
        if records is None:
            found: list[SourceRecord] = []
            while polled := source.poll():
                found += polled
        else:
            found = source.read(records, seconds)[:records]
            if len(found) < records:
                advice = "Check that the source has these records, or wait longer with seconds=..."
                breach(connector_class.__name__, f"returned {len(found)} of {records} records within {seconds:g} s", advice)
        source.acknowledge(found)
    return found


@dataclass(slots=True)
class SinkRun:
    """The result of ``run_sink``: the committed offsets, and the bad records that the sink reported."""

    committed: dict[TopicPartition, int] = field(default_factory=dict)
    reported: list[tuple[SinkRecord, BaseException]] = field(default_factory=list)


def run_sink(
    connector_class: type[SinkConnector],
    config: Mapping[str, str],
    records: Sequence[SinkRecord],
    *,
    tasks_max: int = 1,
    reports: bool = True,
) -> SinkRun:
    """Start a sink, put the records, commit, and stop. A put that raises RetriableError is retried ten times.

    Partitions are assigned to the tasks round-robin. With ``reports=False`` there is no errant record reporter. Raises any
    error of the connector.
    """
    config = full_config(connector_class, config, tasks_max)
    connector = connector_class()
    connector.initialize(MemoryConnectorContext())
    connector.start(config)
    run = SinkRun()
    try:
        configs = connector.task_configs(tasks_max)
        partitions = sorted({TopicPartition(record.topic, record.kafka_partition) for record in records})
        for number, task_config in enumerate(configs):
            mine = frozenset(partitions[number :: len(configs)])
            context = MemorySinkContext({**config, **task_config}, mine, reports=reports)
            ours = [record for record in records if (record.topic, record.kafka_partition) in mine]
            run.committed.update(_run_task(connector.task_class(), context, ours))
            run.reported += context.reported
    finally:
        connector.stop()
    return run


def next_offsets(records: Sequence[SinkRecord]) -> dict[TopicPartition, int]:
    """Return the next offsets to read after these records, by original topic partition."""
    offsets: dict[TopicPartition, int] = {}
    for record in records:
        partition = record.original_topic_partition
        offsets[partition] = max(offsets.get(partition, 0), record.original_kafka_offset + 1)
    return offsets


def put(task: SinkTask, records: Sequence[SinkRecord]) -> None:
    """Put records, and retry if the task raises RetriableError."""
    for _ in range(_RETRIES):
        try:
            return task.put(records)
        except RetriableError:
            continue
    return task.put(records)


def _run_task(task: SinkTask, context: MemorySinkContext, records: Sequence[SinkRecord]) -> Mapping[TopicPartition, int]:
    task.initialize(context)
    try:
        task.start(context.configs)
        task.open(context.assignment)
        put(task, records)
        committed = task.pre_commit(next_offsets(records))
        task.close(context.assignment)
    finally:
        task.stop()
    return committed


def run_transform(transform_class: type[Transform], options: Mapping[str, str], *records: R) -> list[R]:
    """Configure a transform, apply it to records, close it, and return the resulting records."""
    transform = transform_class()
    transform.configure(options)
    try:
        return [after for record in records for after in as_list(transform.apply(record))]
    finally:
        transform.close()


def as_list(result: R | Sequence[R] | None) -> list[R]:
    """Return the result of a transform's ``apply`` as a list of records."""
    if result is None:
        return []
    return [result] if isinstance(result, (SourceRecord, SinkRecord)) else list(result)
