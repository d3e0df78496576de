"""The statuses of a host's tasks. Fakes stand in for the status topic."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.kafka.kafka_based_log import LogRecord
from sluiceway.runtime.task import TaskSpec
from sluiceway.storage.codec import OURS, encode_task_status
from sluiceway.storage.heartbeats import Heartbeat
from sluiceway.storage.model import State, Status, TaskId
from sluiceway.worker.task_host.shared_services import SharedStatuses

ONE, TWO = TaskId("c", 0), TaskId("d", 0)


class Topic:
    """Stands in for the status topic's store and for what the host has read of it."""

    def __init__(self) -> None:
        self.statuses: list[TaskId] = []
        self.heartbeats: list[Heartbeat] = []
        self.last: dict[bytes, LogRecord] = {}

    def put_task(self, task: TaskId, status: Status) -> None:
        self.wrote(task, status)
        self.statuses.append(task)

    def wrote(self, task: TaskId, status: Status) -> None:
        """Let the topic hold a status of any process."""
        key, value = encode_task_status(task, status)
        self.last[key] = LogRecord("statuses", 0, 0, 0, key, value, () if status.of_connect else OURS)

    def put_tasks(self, statuses: Mapping[TaskId, Status]) -> None:
        for task, status in statuses.items():
            self.put_task(task, status)

    def put_heartbeat(self, sender: str, heartbeat: Heartbeat) -> None:
        assert sender == "h"
        self.heartbeats.append(heartbeat)


class Host:
    """Statuses of a host that beats every 10 seconds, on a clock that the test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr("sluiceway.worker.task_host.shared_services.time.monotonic", lambda: self.now)
        self.topic = Topic()
        self.statuses = SharedStatuses("h", "w:1", self.topic, 10.0, lambda key: self.topic.last.get(key))  # type: ignore[arg-type]

    def report(self, task: TaskId, state: State, generation: int = 1) -> None:
        spec = TaskSpec(id=task, config={}, worker=WorkerConfig.of({}), worker_id="w:1", generation=generation, sink=False)
        self.statuses.reporter(spec).report(state)

    def beat(self, now: float) -> list[Mapping[TaskId, int]]:
        """Return the tasks of the heartbeats that are written at a time."""
        self.now = now
        self.topic.statuses.clear()
        self.topic.heartbeats.clear()
        self.statuses.beat()
        return [each.tasks for each in self.topic.heartbeats]


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    return Host(monkeypatch)


def test_one_record_renews_the_statuses_of_all_running_tasks(host: Host) -> None:
    host.report(ONE, State.RUNNING, 2)
    host.report(TWO, State.PAUSED)
    host.report(TaskId("e", 0), State.FAILED)
    assert host.beat(105) == []
    assert host.beat(110) == [{ONE: 2, TWO: 1}]
    assert host.topic.statuses == []
    host.statuses.end(ONE)
    assert host.beat(120) == [{TWO: 1}]
    host.statuses.end(TWO)
    assert host.beat(130) == []


def test_a_status_that_another_process_has_written_over_is_written_again(host: Host) -> None:
    """Such as the driver's that the task waits for a slot, written as the task started."""
    host.report(ONE, State.RUNNING)
    host.report(TWO, State.RUNNING)
    host.topic.put_task(ONE, Status(State.UNASSIGNED, "w:1", 1, "Waits for a slot"))
    assert host.beat(110) == [{ONE: 1, TWO: 1}]
    assert host.topic.statuses == [ONE]


def test_a_host_that_was_suspended_reads_commands_before_its_next_heartbeat(host: Host) -> None:
    host.report(ONE, State.RUNNING)
    assert host.beat(112) == []
    assert host.beat(117) == [{ONE: 1}]


def test_a_status_of_a_newer_driver_is_not_overwritten(host: Host) -> None:
    host.report(ONE, State.RUNNING, 2)
    for generation, overwritten in ((2, [ONE]), (1, [ONE]), (3, [])):
        host.topic.wrote(ONE, Status(State.UNASSIGNED, "w:2", generation))
        host.beat(host.now + 10)
        assert host.topic.statuses == overwritten, f"generation {generation}"


def test_a_status_of_kafka_connect_is_not_overwritten(host: Host) -> None:
    host.report(ONE, State.RUNNING, 2)
    host.topic.wrote(ONE, Status(State.RUNNING, "10.0.0.7:8083", 1, of_connect=True))
    host.beat(host.now + 10)
    assert host.topic.statuses == []
