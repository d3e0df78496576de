"""Commands and log levels that a task reads from the config and status topics."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Iterator, Sequence

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import InternalTopicError
from sluiceway.kafka.kafka_based_log import LogRecord
from sluiceway.runtime.task import TaskCommand, TaskSpec
from sluiceway.storage.codec import OURS, decode_status_record, encode_connector_status, encode_logger_level, encode_task_status
from sluiceway.storage.model import State, Status, TaskId
from sluiceway.worker import kafka_task_services, task_commands
from sluiceway.worker.kafka_task_services import KafkaTaskControl
from sluiceway.worker.task_commands import command_in, command_keys, release_key
from support.eventually import NEVER

WORKER = WorkerConfig.of({"config.storage.topic": "configs", "status.storage.topic": "statuses"})
SPEC = TaskSpec(id=TaskId("c", 0), config={}, worker=WORKER, worker_id="me:1", generation=4, sink=False)


class Tail:
    """Stands in for the reader of both topics; returns lists of records that ``put`` was given, or raises an exception."""

    def __init__(self, *_: object) -> None:
        self._answers: queue.Queue[list[LogRecord] | Exception] = queue.Queue()
        self._given = False

    def put(self, answer: list[LogRecord] | Exception) -> None:
        """Wait until the task's thread has taken the answer, and asks for the next one."""
        self._answers.put(answer)
        self._answers.join()

    def poll(self, timeout: float) -> list[LogRecord]:
        if self._given:
            self._given = False
            self._answers.task_done()
        try:
            answer = self._answers.get(timeout=timeout)
        except queue.Empty:
            return []
        self._given = True
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        if self._given:
            self._answers.task_done()


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

    tail.put(
        [
            record("configs", "connector.c", "DEBUG"),
            record("configs", "org.a", "LOUD"),
            record("configs", "connector.d", "TRACE"),
            record("statuses", "connector.c", "ERROR"),
            record("configs", "org.a", "WARN"),
        ]
    )
    control.close()
    assert control.command() is TaskCommand.RUN
    assert logging.getLogger("sluiceway").level == logging.DEBUG
    assert logging.getLogger("org.a").level == logging.WARNING


@pytest.mark.parametrize(
    ("task", "status", "command"),
    [
        (TaskId("c", 0), Status(State.UNASSIGNED, "me:1", 4), TaskCommand.STOP),
        (TaskId("c", 0), Status(State.RESTARTING, "me:1", 4), TaskCommand.STOP),
        (TaskId("c", 0), Status(State.RUNNING, "me:1", 4), None),
        (TaskId("c", 0), Status(State.UNASSIGNED, "me:1", 4, trace="Waits for a slot"), None),
        (TaskId("c", 0), Status(State.UNASSIGNED, "me:1", 3), None),
        (TaskId("c", 0), Status(State.UNASSIGNED, "me:1", 5), TaskCommand.ABANDON),
        (TaskId("c", 0), Status(State.RUNNING, "me:1", 5), TaskCommand.ABANDON),
        (TaskId("c", 0), Status(State.UNASSIGNED, "other:2", 5), TaskCommand.ABANDON),
        (TaskId("c", 0), Status(State.UNASSIGNED, "other:2", 3), None),
        (TaskId("c", 0), Status(State.RUNNING, "connect:8083", 5, of_connect=True), None),
        (TaskId("c", 1), Status(State.UNASSIGNED, "me:1", 4), None),
    ],
)
def test_a_task_status_is_a_command_from_its_own_or_a_newer_driver(
    task: TaskId, status: Status, command: TaskCommand | None
) -> None:
    key, value = encode_task_status(task, status)
    headers = () if status.of_connect else OURS
    assert command_in(LogRecord("statuses", 0, 0, 0, key, value, headers), SPEC) is command


def test_the_own_drivers_connector_may_have_a_higher_generation() -> None:
    key, value = encode_connector_status("c", Status(State.RUNNING, "me:1", 9))
    assert command_in(LogRecord("statuses", 0, 0, 0, key, value, OURS), SPEC) is None


@pytest.mark.parametrize(
    ("connector", "driver", "command"),
    [("c", b"me:1", TaskCommand.STOP), ("c", b"other:2", None), ("c", None, None), ("d", b"me:1", None)],
)
def test_a_release_is_a_command_to_the_tasks_of_its_driver(
    connector: str, driver: bytes | None, command: TaskCommand | None
) -> None:
    assert command_in(LogRecord("statuses", 0, 0, 0, release_key(connector), driver), SPEC) is command
    assert release_key("c") in command_keys(SPEC.id)


def test_heartbeats_end_with_the_stop_command_and_those_of_others_are_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_task_services, "TopicTail", Tail)
    decoded: list[bytes | None] = []

    def counted(key: bytes | None, value: bytes | None, timestamp: int, headers: Sequence[object]) -> object:
        decoded.append(key)
        return decode_status_record(key, value, timestamp, headers)

    monkeypatch.setattr(task_commands, "decode_status_record", counted)
    ended: list[bool] = []
    control = KafkaTaskControl(SPEC, {}, TaskCommand.RUN, on_end=lambda: ended.append(True))
    tail: Tail = control._tail  # type: ignore[assignment]

    def record(task: TaskId, state: State) -> LogRecord:
        return LogRecord("statuses", 0, 0, 0, *encode_task_status(task, Status(state, "me:1", 4)))

    tail.put([record(TaskId("other", number), State.RUNNING) for number in range(50)])
    assert (decoded, ended) == ([], [])
    timer = threading.Timer(0.05, tail.put, [[record(SPEC.id, State.RUNNING), record(SPEC.id, State.UNASSIGNED)]])
    timer.start()
    control.wait(NEVER)
    assert control.command() is TaskCommand.STOP
    assert (len(decoded), ended) == (2, [True])
    control.close()


def test_a_lost_topic_ends_a_wait_and_fails_the_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_task_services, "TopicTail", Tail)
    control = KafkaTaskControl(SPEC, {}, TaskCommand.RUN)
    tail: Tail = control._tail  # type: ignore[assignment]
    tail.put(InternalTopicError("Topic 'configs' was deleted"))
    control.wait(NEVER)
    with pytest.raises(InternalTopicError, match="was deleted"):
        control.command()
    control.close()
