"""Commands and log levels that a task reads from the config and status topics."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.kafka.kafka_based_log import LogRecord
from sluiceway.runtime.task import TaskCommand, TaskSpec
from sluiceway.storage.codec import encode_logger_level, encode_task_status
from sluiceway.storage.model import State, Status, TaskId
from sluiceway.worker import kafka_task_services
from sluiceway.worker.kafka_task_services import KafkaTaskControl, command_in

WORKER = WorkerConfig.of({"config.storage.topic": "configs", "status.storage.topic": "statuses"})
SPEC = TaskSpec(id=TaskId("c", 0), config={}, worker=WORKER, worker_id="me:1", generation=4, sink=False)


class Tail:
    """Stands in for the reader of both topics; returns ``records`` once."""

    def __init__(self, *_: object) -> None:
        self.records: list[LogRecord] = []

    def poll(self, _timeout: float) -> list[LogRecord]:
        found, self.records = self.records, []
        return found

    def close(self) -> None: ...


@pytest.fixture
def levels() -> Iterator[None]:
    yield
    for name in ("sluiceway", "org.a"):
        logging.getLogger(name).setLevel(logging.NOTSET)


@pytest.mark.usefixtures("levels")
def test_a_task_applies_log_levels_that_are_set_for_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_task_services, "TopicTail", Tail)
    control = KafkaTaskControl(SPEC, {}, TaskCommand.RUN)
    tail: Tail = control._tail  # type: ignore[assignment]

    def record(topic: str, logger: str, level: str) -> LogRecord:
        key, value = encode_logger_level(logger, level)
        return LogRecord(topic, 0, 0, 0, key, value)

    tail.records = [
        record("configs", "connector.c", "DEBUG"),
        record("configs", "org.a", "LOUD"),
        record("configs", "connector.d", "TRACE"),
        record("statuses", "connector.c", "ERROR"),
        record("configs", "org.a", "WARN"),
    ]
    assert control.command() is TaskCommand.RUN
    assert logging.getLogger("sluiceway").level == logging.DEBUG
    assert logging.getLogger("org.a").level == logging.WARNING


@pytest.mark.parametrize(
    ("task", "status", "command"),
    [
        (TaskId("c", 0), Status(State.UNASSIGNED, "me:1", 4), TaskCommand.STOP),
        (TaskId("c", 0), Status(State.RESTARTING, "me:1", 4), TaskCommand.STOP),
        (TaskId("c", 0), Status(State.RUNNING, "me:1", 4), None),
        (TaskId("c", 0), Status(State.UNASSIGNED, "other:2", 5), TaskCommand.ABANDON),
        (TaskId("c", 0), Status(State.UNASSIGNED, "other:2", 3), None),
        (TaskId("c", 1), Status(State.UNASSIGNED, "me:1", 4), None),
    ],
)
def test_a_task_status_is_a_command_from_its_own_or_a_newer_driver(
    task: TaskId, status: Status, command: TaskCommand | None
) -> None:
    key, value = encode_task_status(task, status)
    assert command_in(LogRecord("statuses", 0, 0, 0, key, value), SPEC) is command
