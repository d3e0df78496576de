"""When offsets are stored at least once: only after Kafka has what they stand for."""

from __future__ import annotations

from typing import Any

import pytest

from sluiceway.errors import ConnectError, FencedError
from sluiceway.runtime.source.delivery import AtLeastOnceDelivery
from sluiceway.runtime.source.transaction_boundary import CommitAction


class FakeSender:
    failed = False

    def __init__(self, *, flushed: bool) -> None:
        self.flushed = flushed

    def flush(self, _seconds: float, _check: Any) -> bool:
        return self.flushed


class FakeOffsets:
    pending = True

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.writes = 0

    def write(self) -> None:
        self.writes += 1
        if self.error is not None:
            raise self.error


def delivery(offsets: FakeOffsets, *, records: bool = True, letters: bool = True) -> AtLeastOnceDelivery:
    return AtLeastOnceDelivery(
        FakeSender(flushed=records),  # type: ignore[arg-type]
        offsets,  # type: ignore[arg-type]
        interval=60,
        timeout=1,
        flush_dead_letter_queue=lambda _seconds, _check: letters,
        check=lambda: None,
    )


@pytest.mark.parametrize(("records", "letters", "stored"), [(True, True, 1), (False, True, 0), (True, False, 0)])
def test_offsets_are_stored_once_kafka_has_the_records_and_the_dead_letters(records: bool, letters: bool, stored: int) -> None:
    offsets = FakeOffsets()
    made = delivery(offsets, records=records, letters=letters)
    assert made.apply(CommitAction.COMMIT) is bool(stored)
    assert offsets.writes == stored


@pytest.mark.parametrize(("records", "letters"), [(False, True), (True, False)])
def test_a_commit_that_kafka_was_too_slow_for_is_continued_until_it_has_all(records: bool, letters: bool) -> None:
    offsets = FakeOffsets()
    late, ready = delivery(offsets, records=records, letters=letters), delivery(offsets)
    seen = [late.behind]
    late.apply(CommitAction.COMMIT)
    seen.append(late.behind)
    late._sender, late._flush_dead_letter_queue = ready._sender, ready._flush_dead_letter_queue
    late.apply(CommitAction.COMMIT)
    assert ([*seen, late.behind], offsets.writes) == ([False, True, False], 1)


def test_a_failed_write_is_tried_again_and_a_fence_is_not() -> None:
    assert delivery(FakeOffsets(ConnectError("away"))).apply(CommitAction.COMMIT) is False
    with pytest.raises(FencedError):
        delivery(FakeOffsets(FencedError("later"))).apply(CommitAction.COMMIT)


def test_after_a_failure_offsets_are_stored_unless_a_record_was_lost_or_the_task_was_fenced() -> None:
    kept, lost, fenced = FakeOffsets(), FakeOffsets(), FakeOffsets()
    assert delivery(kept).fail(ValueError("the task's")) is True
    broken = delivery(lost)
    broken._sender.failed = True
    assert broken.fail(ValueError("the task's")) is False
    assert delivery(fenced).fail(FencedError("later")) is False
    assert (kept.writes, lost.writes, fenced.writes) == (1, 0, 0)
