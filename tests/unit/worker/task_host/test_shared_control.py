"""Commands of a task that shares the reader of the topics with others."""

from __future__ import annotations

import threading
import time

from sluiceway.config.worker import WorkerConfig
from sluiceway.kafka.kafka_based_log import LogRecord
from sluiceway.runtime.task import TaskCommand, TaskSpec
from sluiceway.storage.codec import encode_target_state, encode_task_status
from sluiceway.storage.model import State, Status, TargetState, TaskId
from sluiceway.worker.task_host.shared_control import SharedTaskControl
from support.eventually import NEVER

WORKER = WorkerConfig.of({"config.storage.topic": "configs", "status.storage.topic": "statuses", "group.id": "g"})
SPEC = TaskSpec(id=TaskId("c", 0), config={}, worker=WORKER, worker_id="me:1", generation=2, sink=False)


def record(topic: str, key_value: tuple[bytes, bytes | None]) -> LogRecord:
    return LogRecord(topic, 0, 0, 0, *key_value)


def test_a_command_ends_a_wait_at_once() -> None:
    control = SharedTaskControl(SPEC, TaskCommand.RUN, lambda: None)
    timer = threading.Timer(0.05, lambda: control.read(record("configs", encode_target_state("c", TargetState.PAUSED))))
    timer.start()
    control.wait(NEVER)
    assert control.command() is TaskCommand.PAUSE


def test_a_wait_after_a_command_or_a_wake_ends_at_once() -> None:
    control = SharedTaskControl(SPEC, TaskCommand.RUN, lambda: None)
    for cause in (control.wake, lambda: control.receive(TaskCommand.PAUSE)):
        cause()
        control.wait(NEVER)
    started = time.monotonic()
    control.wait(0.05)
    assert time.monotonic() - started >= 0.05, "each cause ends one wait"


def test_a_stop_is_final_and_ends_the_heartbeats() -> None:
    ended: list[bool] = []
    control = SharedTaskControl(SPEC, TaskCommand.RUN, lambda: ended.append(True))
    control.read(record("statuses", encode_task_status(SPEC.id, Status(State.UNASSIGNED, "me:1", 2))))
    control.receive(TaskCommand.RUN)
    assert (control.command(), ended) == (TaskCommand.STOP, [True])
    control.receive(TaskCommand.ABANDON)
    assert control.command() is TaskCommand.ABANDON
