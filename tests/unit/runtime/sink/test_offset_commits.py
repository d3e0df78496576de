from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from sluiceway.api import TopicPartition
from sluiceway.runtime.sink.offset_commits import SinkOffsetCommitter
from sluiceway.runtime.sink.sink_records import SinkBatch
from sluiceway.runtime.sink.sink_task_context import WorkerSinkTaskContext
from support.engine_connectors import Script, ScriptedSinkTask

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


class FakeConsumer:
    assignment = frozenset({A, B})

    def __init__(self) -> None:
        self.committed: dict[TopicPartition, int] = {}
        self.commits: list[tuple[dict[TopicPartition, int], float | None]] = []
        self.seeks: list[Mapping[TopicPartition, int]] = []

    def commit(self, offsets: Mapping[TopicPartition, int], *, wait: float | None = None) -> None:
        if offsets:
            self.commits.append((dict(offsets), wait))
            self.committed.update(offsets)

    def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        self.seeks.append(offsets)


@pytest.fixture
def consumer() -> FakeConsumer:
    return FakeConsumer()


def commits(
    consumer: FakeConsumer,
    pre_commit: Any = None,
    interval: float = 1000.0,
    flush_reports: Callable[[float], bool] = lambda _seconds: True,
) -> SinkOffsetCommitter:
    task = ScriptedSinkTask()
    task.script = Script(pre_commit=pre_commit)
    context = WorkerSinkTaskContext({}, consumer)  # type: ignore[arg-type]
    made = SinkOffsetCommitter(
        task,
        consumer,  # type: ignore[arg-type]
        context,
        interval,
        flush_reports=flush_reports,
        last_commit_seconds=7.0,
    )
    made.delivered(SinkBatch(starts={A: 0, B: 10}, ends={A: 5, B: 12}))
    return made


def test_offsets_of_put_records_are_committed_once(consumer: FakeConsumer) -> None:
    made = commits(consumer)
    made.commit()
    made.commit()
    assert consumer.commits == [({A: 5, B: 12}, None)]


def test_nothing_is_committed_before_the_interval_is_over(consumer: FakeConsumer) -> None:
    commits(consumer).commit_if_due()
    assert consumer.commits == []
    commits(consumer, interval=0.0).commit_if_due()
    assert consumer.commits == [({A: 5, B: 12}, None)]


def test_a_request_for_a_commit_applies_once(consumer: FakeConsumer) -> None:
    made = commits(consumer)
    made._context.request_commit()
    made.commit_if_due()
    made.delivered(SinkBatch(starts={A: 5}, ends={A: 6}))
    made.commit_if_due()
    assert consumer.commits == [({A: 5, B: 12}, None)]


def test_only_offsets_that_pre_commit_returns_are_committed(consumer: FakeConsumer) -> None:
    commits(consumer, pre_commit=lambda _offsets: {A: 3}).commit()
    assert consumer.commits == [({A: 3}, None)]


def test_offsets_beyond_the_put_records_or_of_unassigned_partitions_are_ignored(
    consumer: FakeConsumer, caplog: pytest.LogCaptureFixture
) -> None:
    commits(consumer, pre_commit=lambda _offsets: {A: 6, TopicPartition("other", 0): 1, B: 11}).commit()
    assert consumer.commits == [({B: 11}, None)]
    assert "Ignoring offset 6 of t-0 that pre_commit() returned" in caplog.text
    assert "other-0" in caplog.text


def test_a_failed_pre_commit_rewinds_to_the_committed_offsets(consumer: FakeConsumer) -> None:
    def failing(_offsets: Any) -> Any:
        raise OSError("disk full")

    made = commits(consumer, pre_commit=failing)
    made.commit()
    assert consumer.seeks == [{A: 0, B: 10}]
    assert consumer.commits == []
    made._task.script.pre_commit = None  # type: ignore[attr-defined]
    made.commit()
    assert consumer.commits == [], "the rewound records were committed"


def test_the_commit_of_revoked_partitions_waits_and_leaves_the_others(consumer: FakeConsumer) -> None:
    made = commits(consumer)
    made.commit_and_wait(frozenset({A}))
    made.forget(frozenset({A}))
    assert consumer.commits == [({A: 5}, 7.0)]
    assert made.current_offsets == {B: 12}


def test_nothing_is_committed_before_the_dead_letter_queue_records_are_in_kafka(consumer: FakeConsumer) -> None:
    flushes = iter([False, False, True])
    made = commits(consumer, flush_reports=lambda _seconds: next(flushes))
    made.commit()
    assert not made.commit_and_wait()
    assert (consumer.commits, consumer.seeks) == ([], [])
    made.commit()
    assert consumer.commits == [({A: 5, B: 12}, None)]


C = TopicPartition("t", 2)


def test_what_is_not_passed_to_put_is_committed_with_what_is_put(consumer: FakeConsumer) -> None:
    made = commits(consumer, lambda offsets: {A: 5, B: 11})
    made.passed({A: 9, B: 20, C: 7})
    made.commit()
    assert consumer.commits == [({A: 9, B: 11, C: 7}, None)], "the last record of B is not safe yet"


def test_what_is_read_again_is_not_passed_any_more(consumer: FakeConsumer) -> None:
    made = commits(consumer, lambda offsets: {A: 3})
    made.passed({A: 9})
    made.rewound({A: 3})
    made.commit()
    assert consumer.commits == [({A: 3}, None)]


def test_after_a_failed_commit_nothing_is_passed(consumer: FakeConsumer) -> None:
    failures = [RuntimeError("away")]

    def pre_commit(_offsets: object) -> dict[TopicPartition, int]:
        if failures:
            raise failures.pop()
        return {A: 5}

    made = commits(consumer, pre_commit)
    consumer.committed = {A: 5}
    made.passed({A: 9})
    made.commit()
    assert consumer.seeks == [{A: 5}]
    made.commit()
    assert consumer.commits == []


def test_partitions_that_are_lost_are_forgotten(consumer: FakeConsumer) -> None:
    made = commits(consumer, lambda offsets: {})
    made.passed({C: 7})
    made.forget(frozenset({C}))
    made.commit()
    assert consumer.commits == []
