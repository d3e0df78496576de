"""Whether a launched task runs, waits for a slot or is lost."""

from __future__ import annotations

import pytest

from sluiceway.storage.model import State, Status
from sluiceway.worker.task_watch import Slot, TaskWatch, Verdict

TIMEOUT = 25.0


def status(timestamp: int, state: State = State.RUNNING, generation: int = 4) -> Status:
    return Status(state, "me:1", generation, timestamp=timestamp)


def test_a_task_without_a_slot_waits_after_two_seconds_and_until_it_has_one() -> None:
    watch = TaskWatch(4, TIMEOUT)
    seen = [watch.judge(slot, None, now) for slot, now in [(Slot.NONE, 10.0), (Slot.NONE, 11.9), (Slot.NONE, 12.0)]]
    assert seen == [Verdict.FINE, Verdict.FINE, Verdict.WAITS]
    waited = watch.waiting
    assert watch.judge(Slot.HELD, None, 13.0) is Verdict.FINE
    assert (waited, watch.waiting) == (True, False)
    assert watch.judge(Slot.NONE, None, 14.0) is Verdict.FINE, "the two seconds start again"


def test_a_task_that_spark_has_not_started_in_a_free_slot_waits_after_a_minute() -> None:
    watch = TaskWatch(4, TIMEOUT)
    seen = [watch.judge(Slot.QUEUED, None, now) for now in (0.0, 2.0, 59.9, 60.0)]
    assert seen == [Verdict.FINE] * 3 + [Verdict.WAITS]
    assert watch.waiting
    assert watch.judge(Slot.QUEUED, status(1), 61.0) is Verdict.FINE, "it has reported"


def test_a_task_that_has_reported_does_not_wait_for_its_first_slot() -> None:
    watch = TaskWatch(4, TIMEOUT)
    assert [watch.judge(Slot.NONE, status(1), now) for now in (0.0, 5.0)] == [Verdict.FINE, Verdict.FINE]


def test_a_task_that_spark_has_queued_again_is_lost_even_if_its_last_report_was_running() -> None:
    watch = TaskWatch(4, TIMEOUT)
    assert [watch.judge(Slot.LOST, status(1), now) for now in (0.0, 1.9, 2.0)] == [Verdict.FINE] * 2 + [Verdict.LOST_SLOT]
    assert not watch.waiting


@pytest.mark.parametrize("state", [State.RUNNING, State.PAUSED])
def test_a_task_is_silent_if_its_record_does_not_change(state: State) -> None:
    watch = TaskWatch(4, TIMEOUT)
    assert watch.judge(Slot.HELD, status(100, state), 10.0) is Verdict.FINE
    assert watch.judge(Slot.HELD, status(101, state), 30.0) is Verdict.FINE
    assert watch.judge(Slot.HELD, status(101, state), 55.0) is Verdict.FINE
    assert watch.judge(Slot.HELD, status(101, state), 55.1) is Verdict.SILENT


def test_record_timestamps_of_another_clock_mean_nothing() -> None:
    watch = TaskWatch(4, TIMEOUT)
    assert watch.judge(Slot.HELD, status(9_999_999), 0.0) is Verdict.FINE
    assert watch.judge(Slot.HELD, status(5), 24.0) is Verdict.FINE, "the clock was set back"
    assert watch.judge(Slot.HELD, status(5), 48.0) is Verdict.FINE


@pytest.mark.parametrize("last", [None, status(1, State.UNASSIGNED), status(1, State.FAILED), status(1, generation=3)], ids=str)
def test_only_a_task_that_has_reported_can_be_silent(last: Status | None) -> None:
    watch = TaskWatch(4, TIMEOUT)
    assert [watch.judge(Slot.HELD, last, now) for now in (0.0, 1000.0)] == [Verdict.FINE, Verdict.FINE]


def test_a_task_is_excused_for_a_time_in_which_nobody_watched() -> None:
    watch = TaskWatch(4, TIMEOUT)
    watch.judge(Slot.HELD, status(1), 0.0)
    watch.excuse(100.0)
    assert watch.judge(Slot.HELD, status(1), 125.0) is Verdict.FINE
    assert watch.judge(Slot.HELD, status(1), 125.1) is Verdict.SILENT
