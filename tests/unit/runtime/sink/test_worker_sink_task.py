"""Sink tasks that are abandoned or stopped while they wait for their dead letter queue."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from confluent_kafka import Message

from sluiceway.errors import DataError
from sluiceway.kafka import clients
from sluiceway.runtime.errors import dead_letter_queue, error_handling
from sluiceway.runtime.task import TaskCommand
from sluiceway.storage.model import State
from support.engine import RunningTask
from support.engine_connectors import SINK, Script, script
from support.eventually import eventually
from unit.runtime.fake_clients import FakeProducer
from unit.runtime.fake_consumer import FakeConsumer

CONFIG = {
    "name": "snk",
    "connector.class": SINK,
    "topics": "t",
    "errors.tolerance": "all",
    "errors.deadletterqueue.topic.name": "dlq",
}
WORKER = {"key.converter": "StringConverter", "value.converter": "StringConverter"}


@pytest.fixture(autouse=True)
def clients_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeProducer.made.clear()
    FakeConsumer.made.clear()
    monkeypatch.setattr(clients, "consumer", FakeConsumer)
    monkeypatch.setattr(dead_letter_queue, "producer", FakeProducer)
    monkeypatch.setattr(error_handling, "ensure_dead_letter_topic", lambda *_: None)
    monkeypatch.setattr(
        FakeConsumer,
        "messages",
        [Message(topic="t", partition=0, offset=offset, value=b"v", timestamp=(1, 1000)) for offset in range(2)],
    )


def report(task: Any, record: Any) -> None:
    task.context.errant_record_reporter.report(record, DataError("bad"))


def unacknowledged(task: Any, records: Any) -> None:
    """Report the records; their dead letter queue records are not acknowledged."""
    FakeProducer.made[-1].unresponsive = True
    for record in records:
        report(task, record)


def full(made: Script, task: Any, _records: Any) -> None:
    """Fill the dead letter queue's buffer, so that the next report waits."""
    FakeProducer.made[-1].unresponsive, FakeProducer.made[-1].room = True, 0
    made.waiting_task = task  # type: ignore[attr-defined]


def failures(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the errors in the log, except for skipped records."""
    errors = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    return [error for error in errors if not error.startswith("Skipped a record")]


def put(made: Script) -> bool:
    return "put" in made.names()


def test_a_failed_task_that_is_abandoned_during_its_last_commit_reports_nothing(caplog: pytest.LogCaptureFixture) -> None:
    made = script("snk")

    def on_put(task: Any, records: Any) -> None:
        if records:
            unacknowledged(task, records)
        elif made.taken:
            raise ValueError("disk full")

    made.on_put = on_put
    with RunningTask(CONFIG, WORKER) as task:
        eventually(lambda: "pre_commit" in made.names())  # of the last commit, which now waits for the dead letter queue
        result = task.stop(TaskCommand.ABANDON)
    assert result.failed
    assert task.reports.states == [State.RUNNING]
    assert failures(caplog) == ["Task threw an uncaught and unrecoverable exception"]
    assert FakeConsumer.made[-1].commits == []
    assert made.names()[-2:] == ["close", "stop"]
    assert FakeConsumer.made[-1].closed


def test_a_stopped_task_that_is_abandoned_during_its_last_commit_logs_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    made = script("snk", on_put=unacknowledged)
    with RunningTask(CONFIG, WORKER) as task:
        eventually(lambda: put(made))
        task.commands.give(TaskCommand.STOP)
        eventually(lambda: "pre_commit" in made.names())
        result = task.stop(TaskCommand.ABANDON)
    assert not result.failed
    assert task.reports.states == [State.RUNNING]
    assert failures(caplog) == []
    assert "Abandoned: stopping without a commit" in caplog.text
    assert FakeConsumer.made[-1].commits == []
    assert made.names()[-2:] == ["close", "stop"]
    assert FakeConsumer.made[-1].closed


def test_a_task_that_is_abandoned_while_partitions_are_revoked_reports_nothing(caplog: pytest.LogCaptureFixture) -> None:
    made = script("snk", on_put=unacknowledged)
    with RunningTask(CONFIG, WORKER) as task:
        eventually(lambda: put(made))
        FakeConsumer.made[-1].revoke = True
        eventually(lambda: "pre_commit" in made.names())
        result = task.stop(TaskCommand.ABANDON)
    assert not result.failed
    assert (task.reports.states, failures(caplog)) == ([State.RUNNING], [])
    assert FakeConsumer.made[-1].commits == []
    assert FakeConsumer.made[-1].closed


@pytest.mark.parametrize("swallow", [False, True])
@pytest.mark.parametrize("command", [TaskCommand.STOP, TaskCommand.ABANDON])
def test_a_task_stopped_while_it_reports_in_pre_commit_does_not_fail(
    command: TaskCommand, swallow: bool, caplog: pytest.LogCaptureFixture
) -> None:
    made = script("snk")
    made.on_put = lambda task, records: full(made, task, records)
    waiting: list[bool] = []

    def pre_commit(offsets: Any) -> Any:
        waiting.append(True)
        try:
            report(made.waiting_task, made.taken[-1])  # type: ignore[attr-defined]
        except BaseException:
            if not swallow:
                raise
        return offsets

    made.pre_commit = pre_commit
    with RunningTask(CONFIG, {**WORKER, "offset.flush.interval.ms": "1"}) as task:
        eventually(lambda: waiting)
        result = task.stop(command)
    assert not result.failed
    assert (task.reports.states, failures(caplog)) == ([State.RUNNING], [])
    assert FakeConsumer.made[-1].commits == []
    assert made.names()[-2:] == ["close", "stop"]


@pytest.mark.parametrize("command", [TaskCommand.STOP, TaskCommand.ABANDON])
def test_an_except_exception_in_put_does_not_swallow_a_stop(command: TaskCommand, caplog: pytest.LogCaptureFixture) -> None:
    made = script("snk")
    caught: list[BaseException] = []

    def on_put(task: Any, records: Any) -> None:
        full(made, task, records)
        for record in records:
            try:
                report(task, record)
            except Exception as error:  # noqa: BLE001 (as connectors do)
                caught.append(error)

    made.on_put = on_put
    with RunningTask(CONFIG, WORKER) as task:
        eventually(lambda: put(made))
        result = task.stop(command)
    assert caught == []
    assert not result.failed
    assert (task.reports.states, failures(caplog)) == ([State.RUNNING], [])
    assert FakeConsumer.made[-1].commits == []


def test_a_task_that_fails_once_it_is_abandoned_reports_nothing() -> None:
    def failing(_task: Any, records: Any) -> None:
        if records:
            task.commands.give(TaskCommand.ABANDON)
            raise ValueError("disk full")

    made = script("snk", on_put=failing)
    task = RunningTask(CONFIG, WORKER)
    with task:
        assert task.join().failed
    assert task.reports.states == [State.RUNNING]
    assert FakeConsumer.made[-1].commits == []
    assert made.names()[-2:] == ["close", "stop"]
