from __future__ import annotations

from typing import Any

import pytest

from sluiceway.api import SourceRecord
from sluiceway.errors import ConnectError
from sluiceway.runtime.source.transaction_boundary import CommitAction, ConnectorBoundary, IntervalBoundary, PollBoundary

COMMIT, ABORT, CONTINUE = CommitAction.COMMIT, CommitAction.ABORT, CommitAction.CONTINUE


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def batch(size: int) -> list[SourceRecord]:
    return [SourceRecord({}, {}, "t", number) for number in range(size)]


def test_each_batch_of_a_task_that_may_wait_for_its_acknowledgement_is_committed() -> None:
    assert set(burst(PollBoundary(Clock(), each_batch=True), 200)) == {CommitAction.COMMIT}


def burst(boundary: PollBoundary, polls: int) -> list[CommitAction]:
    """Return the actions after batches that arrive 1 ms apart, while a commit takes 4 ms."""
    actions = []
    clock = boundary._clock
    assert isinstance(clock, Clock)
    begun = False
    for _ in range(polls):
        if not begun:
            boundary.transaction_begun()
        clock.now += 0.001
        actions.append(boundary.after_batch(0.0001))
        begun = actions[-1] is CONTINUE
        if not begun:
            clock.now += 0.004
            boundary.transaction_ended(0.004)
    return actions


def test_first_batches_are_committed_one_by_one_and_those_of_a_burst_share_transactions() -> None:
    actions = burst(PollBoundary(Clock()), 200)
    assert actions[:3] == [COMMIT] * 3
    assert actions.count(COMMIT) == pytest.approx(3 + 197 / 160, abs=1)


def test_a_slow_task_gets_a_transaction_for_each_batch() -> None:
    boundary = PollBoundary(Clock())
    boundary.transaction_ended(1.0)
    boundary.transaction_begun()
    assert [boundary.after_batch(0.05) for _ in range(10)] == [COMMIT] * 10


@pytest.mark.parametrize("end", ["idle", "slow", "stop"])
def test_a_burst_ends_with_a_commit(end: str) -> None:
    boundary = PollBoundary(Clock())
    assert burst(boundary, 5)[-1] is CONTINUE
    assert {"idle": boundary.when_idle, "slow": lambda: boundary.after_batch(0.5), "stop": boundary.when_stopping}[
        end
    ]() is COMMIT
    boundary.transaction_begun()
    assert boundary.after_batch(0.0) is (CONTINUE if end == "stop" else COMMIT), "the next burst starts from zero"


def test_a_long_burst_survives_one_slow_poll_but_not_two() -> None:
    clock = Clock()
    boundary = PollBoundary(clock)
    burst(boundary, 100)
    boundary.transaction_ended(1.0)
    boundary.transaction_begun()
    assert [boundary.after_batch(0.1), boundary.after_batch(0.0)] == [CONTINUE] * 2
    assert boundary.after_batch(0.1) is COMMIT
    boundary.transaction_begun()
    assert boundary.after_batch(0.0) is COMMIT, "the next burst starts from zero"


def test_a_slow_commit_delays_batches_at_most_half_a_second() -> None:
    clock = Clock()
    boundary = PollBoundary(clock)
    burst(boundary, 4)
    boundary.transaction_ended(10.0)
    boundary.transaction_begun()
    assert boundary.after_batch(0.0) is CONTINUE
    clock.now += 0.5
    assert boundary.after_batch(0.0) is COMMIT


def test_an_interval_counts_from_the_last_commit() -> None:
    clock = Clock()
    boundary = IntervalBoundary(10, clock)
    clock.now = 9.9
    assert (boundary.after_batch(1), boundary.when_idle()) == (CONTINUE, CONTINUE)
    clock.now = 10
    assert (boundary.after_batch(1), boundary.when_idle()) == (COMMIT, COMMIT)
    boundary.transaction_ended(0.1)
    assert boundary.when_idle() is CONTINUE
    assert boundary.when_stopping() is COMMIT


def test_records_that_end_transactions_split_a_batch() -> None:
    boundary, records = ConnectorBoundary(), batch(5)
    boundary.commit_transaction(records[1])
    boundary.abort_transaction(records[2])
    assert boundary.split(records) == [(records[:2], COMMIT), (records[2:3], ABORT), (records[3:], CONTINUE)]
    assert boundary.split(records) == [(records, CONTINUE)], "each request applies once"


def test_no_empty_part_follows_if_the_last_record_ends_a_transaction() -> None:
    boundary, records = ConnectorBoundary(), batch(2)
    boundary.commit_transaction(records[1])
    assert boundary.split(records) == [(records, COMMIT)]


def test_a_request_for_a_later_record_is_kept() -> None:
    boundary, records = ConnectorBoundary(), batch(2)
    boundary.commit_transaction(records[1])
    assert boundary.split(records[:1]) == [(records[:1], CONTINUE)]
    assert boundary.split(records[1:]) == [(records[1:], COMMIT)]


@pytest.mark.parametrize(("ask", "action"), [("commit_transaction", COMMIT), ("abort_transaction", ABORT)])
def test_a_request_for_a_batch_applies_after_the_next_batch_only(ask: str, action: CommitAction) -> None:
    boundary = ConnectorBoundary()
    getattr(boundary, ask)()
    assert boundary.when_idle() is CONTINUE
    assert boundary.when_stopping() is CONTINUE
    assert [boundary.after_batch(0), boundary.after_batch(0)] == [action, CONTINUE]


@pytest.mark.parametrize("record", [None, SourceRecord({}, {}, "t", 1)])
def test_commit_and_abort_of_the_same_record_are_rejected(record: Any) -> None:
    boundary = ConnectorBoundary()
    boundary.commit_transaction(record)
    boundary.commit_transaction(record)
    with pytest.raises(ConnectError):
        boundary.abort_transaction(record)


def test_a_commit_that_the_source_waits_for_does_not_end_a_tasks_own_transaction() -> None:
    assert IntervalBoundary(1000).when_idle(awaited=True) is CommitAction.COMMIT
    assert ConnectorBoundary().when_idle(awaited=True) is CommitAction.CONTINUE
