"""The slots of launched tasks, from Spark's status tracker."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from sluiceway.spark import slot_usage
from sluiceway.spark.slot_usage import SlotUsage
from sluiceway.worker.task_watch import Slot


class Tracker:
    """Stands in for Spark's SparkStatusTracker. ``stages``: active, completed and failed tasks by job group."""

    def __init__(self) -> None:
        self.stages: dict[str, tuple[int, int, int]] = {}
        self.job_status = "RUNNING"
        self.slots = 1
        self.calls = 0

    def getExecutorInfos(self) -> list[Any]:  # noqa: N802 (Spark's name)
        self.calls += 1
        return [SimpleNamespace(numRunningTasks=lambda: sum(active for active, _, _ in self.stages.values()))]

    def getJobIdsForGroup(self, group: str) -> list[int]:  # noqa: N802 (Spark's name)
        return [list(self.stages).index(group)] if group in self.stages else []

    def getJobInfo(self, job: int) -> Any:  # noqa: N802 (Spark's name)
        info = SimpleNamespace(stageIds=lambda: [job], status=lambda: SimpleNamespace(toString=lambda: self.job_status))
        return SimpleNamespace(get=lambda: info)

    def getStageInfo(self, stage: int) -> Any:  # noqa: N802 (Spark's name)
        active, completed, failed = list(self.stages.values())[stage]
        info = SimpleNamespace(numActiveTasks=lambda: active, numCompletedTasks=lambda: completed, numFailedTasks=lambda: failed)
        return SimpleNamespace(isEmpty=lambda: False, get=lambda: info)


@pytest.fixture
def tracker(monkeypatch: pytest.MonkeyPatch) -> Tracker:
    monkeypatch.setattr(slot_usage, "_SECONDS", 0.0)
    monkeypatch.setattr(slot_usage, "_IDLE_FACTOR", 0)
    return Tracker()


def usage(tracker: Tracker, *jobs: str) -> SlotUsage:
    profiles = SimpleNamespace(defaultResourceProfile=lambda: None)
    java = SimpleNamespace(
        statusTracker=lambda: tracker, maxNumConcurrentTasks=lambda _: tracker.slots, resourceProfileManager=lambda: profiles
    )
    made = SlotUsage(SimpleNamespace(_jsc=SimpleNamespace(sc=lambda: java)))  # type: ignore[arg-type]
    for job in jobs:
        made.add(job)
    return made


def test_a_task_without_a_running_attempt_has_no_slot(tracker: Tracker) -> None:
    tracker.stages = {"a": (1, 0, 0), "b": (0, 0, 0), "c": (0, 0, 1), "d": (0, 1, 0)}
    found = usage(tracker, "a", "b", "c", "d", "not submitted yet")
    assert [found.slot(job) for job in "abcd"] == [Slot.HELD, Slot.NONE, Slot.LOST, Slot.HELD]
    assert found.slot("not submitted yet") is Slot.HELD


@pytest.mark.parametrize(("slots", "expected"), [(0, Slot.NONE), (1, Slot.NONE), (2, Slot.QUEUED), (9, Slot.QUEUED)])
def test_a_task_waits_for_a_slot_only_while_none_is_free(tracker: Tracker, slots: int, expected: Slot) -> None:
    tracker.stages, tracker.slots = {"a": (1, 0, 0), "b": (0, 0, 0)}, slots
    found = usage(tracker, "a", "b")
    assert (found.slot("a"), found.slot("b")) == (Slot.HELD, expected)


def test_a_job_that_has_failed_does_not_wait(tracker: Tracker) -> None:
    tracker.stages, tracker.job_status = {"a": (0, 0, 1)}, "FAILED"
    assert usage(tracker, "a").slot("a") is Slot.HELD


def test_a_job_that_has_ended_is_forgotten(tracker: Tracker) -> None:
    tracker.stages, tracker.slots = {"a": (0, 0, 0)}, 0
    found = usage(tracker, "a")
    assert (found.slot("a"), found.launched) == (Slot.NONE, 1)
    found.discard("a")
    assert (found.slot("a"), found.launched) == (Slot.HELD, 0)


def test_spark_is_asked_at_most_once_a_second(tracker: Tracker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slot_usage, "_SECONDS", 60.0)
    tracker.stages = {"a": (1, 0, 0)}
    found = usage(tracker, "a")
    assert {found.slot("a") for _ in range(10)} == {Slot.HELD}
    assert tracker.calls == 1


def test_nothing_is_concluded_if_spark_does_not_answer() -> None:
    found = SlotUsage(SimpleNamespace())  # type: ignore[arg-type]
    found.add("a")
    assert found.slot("a") is Slot.HELD
