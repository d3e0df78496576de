"""A task's metrics."""

from __future__ import annotations

import math
import time

import pytest

from sluiceway.api import SourceLag
from sluiceway.metrics.beans import CONNECT, OWN, Bean, Value
from sluiceway.metrics.task_metrics import TaskMetrics
from sluiceway.runtime.errors.retry_with_tolerance import ErrorCounts
from sluiceway.storage.model import State, TaskId


def values(metrics: TaskMetrics, kind: str, domain: str = CONNECT) -> dict[str, Value]:
    (bean,) = (bean for bean in metrics.beans() if (bean.domain, bean.type) == (domain, kind))
    return dict(bean.values)


def metrics(*, sink: bool) -> TaskMetrics:
    return TaskMetrics(TaskId("lines", 3), sink=sink)


def test_records_of_a_source_count_as_written_once_kafka_has_them() -> None:
    made, buffered = metrics(sink=False), [4]
    made.count_buffered_by(lambda: buffered[0])
    made.took(10)
    made.called(0.25)
    made.gave(7)
    found = values(made, "source-task-metrics")
    assert (found["source-record-poll-total"], found["source-record-write-total"]) == (10, 3)
    assert (found["source-record-active-count"], found["source-record-active-count-max"]) == (4, 4)
    assert found["poll-batch-max-time-ms"] == found["poll-batch-avg-time-ms"] == 250
    buffered[0] = 0
    assert values(made, "source-task-metrics")["source-record-write-total"] == 7
    buffered[0] = 1  # an event of the producer that is no record
    assert values(made, "source-task-metrics")["source-record-write-total"] == 7


def test_a_closed_producer_holds_no_records() -> None:
    made = metrics(sink=False)

    def closed() -> int:
        raise RuntimeError("Handle has been closed")

    made.count_buffered_by(lambda: 0)
    made.gave(5)
    made.count_buffered_by(closed)
    assert values(made, "source-task-metrics")["source-record-write-total"] == 5


def test_the_lag_of_a_sink_is_what_it_has_put_and_not_committed() -> None:
    made, positions = metrics(sink=True), [(10, 4), (7, 7), (3, 2)]
    made.count_positions_of(lambda: positions)
    made.took(20)
    made.gave(18)
    found = values(made, "sink-task-metrics")
    assert (found["sink-record-read-total"], found["sink-record-send-total"]) == (20, 18)
    assert (found["partition-count"], found["sink-record-lag-max"], found["sink-record-active-count"]) == (3, 6, 7)
    positions[:] = [(10, 10), (7, 7), (3, 3)]
    made.committed(0.5, succeeded=True)
    made.took(2)
    found = values(made, "sink-task-metrics")
    assert found["sink-record-active-count-avg"] == 11  # 20, then 2 after the commit
    assert (found["offset-commit-seq-no"], found["offset-commit-completion-total"]) == (1, 1)


def test_commits_that_fail_are_counted_apart() -> None:
    made = metrics(sink=True)
    assert values(made, "connector-task-metrics")["offset-commit-failure-percentage"] == 0
    made.committed(0.1, succeeded=True)
    for _ in range(3):
        made.committed(0.3, succeeded=False)
    found = values(made, "connector-task-metrics")
    assert (found["offset-commit-success-percentage"], found["offset-commit-failure-percentage"]) == (0.25, 0.75)
    assert found["offset-commit-max-time-ms"] == pytest.approx(300)
    assert found["offset-commit-avg-time-ms"] == pytest.approx(250)
    assert values(made, "sink-task-metrics")["offset-commit-completion-total"] == 1


def test_the_delay_runs_from_the_oldest_record_to_its_commit() -> None:
    def passed() -> float:
        return time.time_ns() / 1_000_000 - now

    made, now = metrics(sink=True), time.time_ns() // 1_000_000
    made.took(2, now - 5000, now - 4000)
    made.took(2, now - 3000, now - 2000)
    made.committed(0.1, succeeded=False)
    made.committed(0.1, succeeded=True)
    found = values(made, "task-metrics", OWN)
    assert 5000 <= float(found["record-delay-ms-max"]) <= 5000 + passed()
    assert 2000 <= float(found["newest-record-age-ms"]) <= 2000 + passed()
    made.took(1, now - 1000, now - 1000)
    made.committed(0.1, succeeded=True)
    assert 3000 <= float(values(made, "task-metrics", OWN)["record-delay-ms-avg"]) <= 3000 + passed()


def test_a_source_reports_the_lag_that_its_task_knows() -> None:
    made = metrics(sink=False)
    assert not {"source-lag-ms", "source-lag-bytes"} & set(values(made, "task-metrics", OWN)), "before the task has started"
    made.ask_lag_of(lambda: SourceLag(seconds=1.5))
    found = values(made, "task-metrics", OWN)
    assert (found["source-lag-ms"], "source-lag-bytes" in found) == (1500, False)
    made.ask_lag_of(lambda: SourceLag(0.0, 7))
    found = values(made, "task-metrics", OWN)
    assert (found["source-lag-ms"], found["source-lag-bytes"]) == (0, 7)


def test_a_method_of_the_task_that_fails_hides_no_other_metric(caplog: pytest.LogCaptureFixture) -> None:
    made = metrics(sink=False)

    def source_lag() -> SourceLag:
        raise RuntimeError("not started")

    made.ask_lag_of(source_lag)
    made.took(3)
    assert values(made, "source-task-metrics")["source-record-poll-total"] == 3
    assert "source_lag() of task" in caplog.text


def test_errors_states_and_plugins() -> None:
    made = metrics(sink=False)
    mask = Bean(
        CONNECT, "connector-transform-metrics", {**made.tags, "transform": "mask"}, {"transform-class": "MaskField$Value"}
    )
    made.describe({"task-class": "Lines"}, [mask])
    made.count_errors_of(ErrorCounts(record_failures=5, records_skipped=2, last_error_timestamp=99))
    made.enter(State.RUNNING)
    found = values(made, "task-error-metrics")
    assert (found["total-record-failures"], found["total-records-skipped"], found["last-error-timestamp"]) == (5, 2, 99)
    task = values(made, "connector-task-metrics")
    assert (task["status"], task["task-class"]) == ("running", "Lines")
    assert mask in made.beans()
    assert math.isnan(float(task["batch-size-avg"]))


def stalled(made: TaskMetrics, seconds: float) -> float:
    """Return ``no-progress-ms`` after so many seconds, in seconds, rounded."""
    (bean,) = (bean for bean in made.beans(time.monotonic() + seconds) if (bean.domain, bean.type) == (OWN, "task-metrics"))
    return round(float(bean.values["no-progress-ms"]) / 1000)


def test_a_sink_that_does_not_come_back_from_put_makes_no_progress() -> None:
    made = metrics(sink=True)
    made.took(5)
    assert stalled(made, 60) == 0, "it does not run yet"
    made.enter(State.RUNNING)
    assert stalled(made, 60) == 60
    made.called(0.1)
    made.gave(5)
    made.caught_up()
    assert stalled(made, 60) == 0, "there is nothing to move"
    made.took(5)
    made.enter(State.PAUSED)
    assert stalled(made, 60) == 0


def test_a_source_whose_records_kafka_does_not_acknowledge_makes_no_progress() -> None:
    made, buffered = metrics(sink=False), [3]
    made.enter(State.RUNNING)
    made.count_buffered_by(lambda: buffered[0])
    made.took(3)
    made.gave(3)
    made.caught_up()
    assert stalled(made, 60) == 60
    made.caught_up()  # polls that return nothing are no progress
    assert stalled(made, 60) == 60
    buffered[0] = 0
    assert stalled(made, 60) == 0


def test_a_source_that_cannot_be_read_makes_no_progress() -> None:
    made = metrics(sink=False)
    made.enter(State.RUNNING)
    assert stalled(made, 60) == 0
    made.blocked()
    assert stalled(made, 60) == 60
    made.caught_up()
    assert stalled(made, 60) == 0


def test_time_without_anything_to_move_does_not_count() -> None:
    made = metrics(sink=True)
    made.enter(State.RUNNING)
    made._moved_at -= 3600
    made.took(1)
    assert stalled(made, 10) == 10
