"""Counts what one task does, for Kafka Connect's connector-task, source-task, sink-task, and task-error metrics.

The task's thread records some numbers for each batch, never for each record. Rates and averages are computed when another
thread asks for them.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Protocol, TypeVar

from sluiceway.api import SourceLag
from sluiceway.metrics.beans import CONNECT, OWN, Bean, Value
from sluiceway.metrics.client_statistics import ClientStatistics
from sluiceway.metrics.sampled import NAN, Sampled
from sluiceway.storage.model import State, TaskId

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


log = logging.getLogger(__name__)

_T = TypeVar("_T")

_ERROR_NAMES = {
    "record_failures": "total-record-failures",
    "record_errors": "total-record-errors",
    "records_skipped": "total-records-skipped",
    "retries": "total-retries",
    "errors_logged": "total-errors-logged",
    "deadletterqueue_produce_requests": "deadletterqueue-produce-requests",
    "deadletterqueue_produce_failures": "deadletterqueue-produce-failures",
    "last_error_timestamp": "last-error-timestamp",
}


class ConsumerPositions(Protocol):
    """The positions of a sink task's consumer. Read by another thread than the task's."""

    def __call__(self) -> Iterable[tuple[int, int]]:
        """Return, for each assigned topic partition, the offset after the last record put and the committed one."""


class TaskMetrics:
    """The metrics of one task. Its thread records, others call ``beans``.

    A source task *takes* records from the source by ``poll`` and *gives* them to Kafka. A sink task takes them from Kafka and
    gives them to the connector by ``put``. So both count the same things, under different names.
    """

    def __init__(self, task: TaskId, *, sink: bool, now: float | None = None) -> None:
        now = time.monotonic() if now is None else now
        self.id = task
        self.sink = sink
        self.states = StateTime(now)
        self.tags = {"connector": task.connector, "task": str(task.task)}
        self._plugins: Mapping[str, Value] = {}
        self._chain: Sequence[Bean] = ()
        self._taken = Sampled(now)
        self._given = Sampled(now)
        self._call_ms = Sampled(now)
        self._active = Sampled(now)
        self._commit_ms = Sampled(now)
        self._committed = Sampled(now)
        self._delay_ms = Sampled(now)
        self._transactions = Sampled(now)
        self._columnar_batches = 0
        self._row_form_batches: dict[str, int] = {}
        self._oldest: int | None = None
        self._newest: int | None = None
        self._sequence = 0
        self._open = 0
        self._written = 0.0
        self._holding = False
        self._moved_at = now
        self._errors: DataclassInstance | None = None
        self._buffered: Callable[[], int] | None = None
        self._positions: ConsumerPositions | None = None
        self._task_own: Callable[[], Mapping[str, float]] = dict
        self._lag: Callable[[], SourceLag] | None = None
        self._waiting: Callable[[], float] = float
        self._clients: list[ClientStatistics] = []
        self._cpu_clock = time.pthread_getcpuclockid(threading.get_ident())

    # What the task runs with.

    def describe(self, plugins: Mapping[str, Value], chain: Sequence[Bean]) -> None:
        """Report the task's plugins in ``connector-task-metrics``, and its transforms and predicates."""
        self._plugins, self._chain = plugins, chain

    def count_errors_of(self, counts: DataclassInstance) -> None:
        """Report these counts of errors, an ``ErrorCounts``."""
        self._errors = counts

    def count_buffered_by(self, buffered: Callable[[], int]) -> None:
        """Count the records that ``buffered`` returns, which Kafka has not acknowledged, as not written yet."""
        self._buffered = buffered

    def count_positions_of(self, positions: ConsumerPositions) -> None:
        """Compute the lag of a sink task from ``positions``."""
        self._positions = positions

    def add_those_of_task(self, values: Callable[[], Mapping[str, float]]) -> None:
        """Report the metrics that ``values`` returns, a task's ``metrics``."""
        self._task_own = values

    def ask_wait_of(self, seconds: Callable[[], float]) -> None:
        """Report the seconds that ``seconds`` returns as the time for which the task has been waiting for another system."""
        self._waiting = seconds

    def ask_lag_of(self, lag: Callable[[], SourceLag]) -> None:
        """Report what ``lag`` returns, a source task's ``source_lag``."""
        self._lag = lag

    def client(self, kind: str, client_id: str) -> ClientStatistics:
        """Return the receiver of statistics of a Kafka client of this task."""
        statistics = ClientStatistics(kind, client_id)
        self._clients.append(statistics)
        return statistics

    # Recorded by the task's thread.

    def enter(self, state: State) -> None:
        """Record the task's state."""
        self.states.enter(state, time.monotonic())

    def took(self, records: int, oldest: int | None = None, newest: int | None = None) -> None:
        """Record a batch of records taken, and the timestamps of the first and the last of them (milliseconds)."""
        now = time.monotonic()
        self._holding, self._moved_at = True, now
        self._taken.record(records, now)
        if self._oldest is None:
            self._oldest = oldest
        if newest is not None:
            self._newest = newest
        if self.sink:
            self._open += records
            self._active.record(self._open, now)

    def called(self, seconds: float) -> None:
        """Record the time of a ``poll`` that returned records, or of a ``put``."""
        self._moved_at = now = time.monotonic()
        self._call_ms.record(seconds * 1000, now)

    def gave(self, records: int) -> None:
        """Record a batch of records given to Kafka or to the connector."""
        self._moved_at = now = time.monotonic()
        self._given.record(records, now)
        if self._buffered is not None:
            self._active.record(self._buffered(), now)

    def caught_up(self) -> None:
        """Record that the task holds no records that it has taken and not yet given."""
        if self._holding:
            self._holding, self._moved_at = False, time.monotonic()

    def blocked(self) -> None:
        """Record that the task cannot take records now, such as from a source that fails."""
        if not self._holding:
            self._holding, self._moved_at = True, time.monotonic()

    def committed(self, seconds: float, *, succeeded: bool) -> None:
        """Record the end of a commit of offsets."""
        now = time.monotonic()
        self._sequence += 1
        self._committed.record(1 if succeeded else 0, now)
        self._commit_ms.record(seconds * 1000, now)
        if self.sink and succeeded:
            self._open = sum(self._behind())
        if succeeded and self._oldest is not None:
            self._delay_ms.record(max(0.0, time.time() * 1000 - self._oldest), now)
            self._oldest = None

    def transaction(self, records: int) -> None:
        """Record a transaction with so many records."""
        self._transactions.record(records, time.monotonic())

    def columnar_batch(self) -> None:
        """Count a batch that was handled as columns."""
        self._columnar_batches += 1

    def row_form_batch(self, reason: str) -> None:
        """Count a batch that was handled record by record, and why."""
        self._row_form_batches[reason] = self._row_form_batches.get(reason, 0) + 1

    # Read by any thread.

    def beans(self, now: float | None = None) -> list[Bean]:
        """Return the task's metrics at this time."""
        now = time.monotonic() if now is None else now
        tags = self.tags
        groups: dict[tuple[str, str], dict[str, Value]] = {
            (CONNECT, "connector-task-metrics"): self._common(now),
            (CONNECT, "sink-task-metrics" if self.sink else "source-task-metrics"): self._sink(now)
            if self.sink
            else self._source(now),
            (CONNECT, "task-error-metrics"): self._error_values(),
            (OWN, "task-metrics"): self._own(now),
        }
        own = self._asked(self._task_own)
        if own:
            groups[OWN, "task-plugin-metrics"] = dict(own)
        beans = [Bean(domain, kind, tags, values) for (domain, kind), values in groups.items()]
        beans += [
            Bean(OWN, "task-state-metrics", {**tags, "state": state.value.lower()}, {"seconds-total": seconds})
            for state, seconds in self.states.all(now).items()
        ]
        beans += [
            Bean(OWN, "task-metrics", {**tags, "reason": reason}, {"row-form-batches-total": float(count)})
            for reason, count in self._row_form_batches.copy().items()
        ]
        beans += self._chain
        for client in self._clients:
            beans += client.beans()
        return beans

    def _common(self, now: float) -> dict[str, Value]:
        succeeded = self._committed.average(now)
        return {
            "status": self.states.state.value.lower(),
            "running-ratio": self.states.ratio(State.RUNNING, now),
            "pause-ratio": self.states.ratio(State.PAUSED, now),
            "offset-commit-max-time-ms": self._commit_ms.largest(now),
            "offset-commit-avg-time-ms": self._commit_ms.average(now),
            "offset-commit-success-percentage": 0.0 if succeeded != succeeded else succeeded,
            "offset-commit-failure-percentage": 0.0 if succeeded != succeeded else 1.0 - succeeded,
            "batch-size-max": self._taken.largest(now),
            "batch-size-avg": self._taken.average(now),
            **self._plugins,
        }

    def _source(self, now: float) -> dict[str, Value]:
        unacknowledged = self._unacknowledged()
        return {
            "source-record-poll-total": self._taken.total,
            "source-record-poll-rate": self._taken.rate(now),
            "source-record-write-total": self._written,
            "source-record-write-rate": self._given.rate(now),
            "poll-batch-max-time-ms": self._call_ms.largest(now),
            "poll-batch-avg-time-ms": self._call_ms.average(now),
            "source-record-active-count": unacknowledged,
            "source-record-active-count-max": self._active.largest(now),
            "source-record-active-count-avg": self._active.average(now),
            "transaction-size-min": self._transactions.smallest(now),
            "transaction-size-max": self._transactions.largest(now),
            "transaction-size-avg": self._transactions.average(now),
        }

    def _sink(self, now: float) -> dict[str, Value]:
        behind = self._behind()
        return {
            "sink-record-read-total": self._taken.total,
            "sink-record-read-rate": self._taken.rate(now),
            "sink-record-send-total": self._given.total,
            "sink-record-send-rate": self._given.rate(now),
            "put-batch-max-time-ms": self._call_ms.largest(now),
            "put-batch-avg-time-ms": self._call_ms.average(now),
            "partition-count": float(len(behind)),
            "sink-record-lag-max": float(max(behind, default=0)),
            "sink-record-active-count": float(sum(behind)),
            "sink-record-active-count-max": self._active.largest(now),
            "sink-record-active-count-avg": self._active.average(now),
            "offset-commit-seq-no": float(self._sequence),
            "offset-commit-completion-total": self._committed.total,
            "offset-commit-completion-rate": self._committed.rate(now),
            "offset-commit-skip-total": 0.0,
            "offset-commit-skip-rate": 0.0,
        }

    def _error_values(self) -> dict[str, Value]:
        counts = asdict(self._errors) if self._errors is not None else dict.fromkeys(_ERROR_NAMES, 0)
        return {name: float(counts[field]) for field, name in _ERROR_NAMES.items()}

    def _own(self, now: float) -> dict[str, Value]:
        newest = self._newest
        return {
            "record-delay-ms-max": self._delay_ms.largest(now),
            "record-delay-ms-avg": self._delay_ms.average(now),
            "newest-record-age-ms": NAN if newest is None else max(0.0, time.time() * 1000 - newest),
            "cpu-seconds-total": self._cpu_seconds(),
            "no-progress-ms": self._no_progress(now) * 1000,
            "waiting-ms": self._waiting() * 1000,
            "columnar-batches-total": float(self._columnar_batches),
            **self._source_lag(),
        }

    def _source_lag(self) -> dict[str, Value]:
        """Return the lag of a source that knows it."""
        lag = None if self._lag is None else self._asked(self._lag)
        if lag is None:
            return {}
        known = {"source-lag-ms": None if lag.seconds is None else lag.seconds * 1000, "source-lag-bytes": lag.bytes}
        return {name: float(value) for name, value in known.items() if value is not None}

    def _asked(self, call: Callable[[], _T]) -> _T | None:
        """Return what a method of the task returns, None if it fails, which must not hide the other metrics."""
        try:
            return call()
        except Exception:
            log.exception("%s() of task %s failed", getattr(call, "__name__", "A method"), self.id)
            return None

    def _no_progress(self, now: float) -> float:
        """Return the seconds since the last record moved, if the task is RUNNING and has something to move, otherwise 0."""
        waiting = self._holding or (not self.sink and self._unacknowledged() > 0)
        return max(0.0, now - self._moved_at) if waiting and self.states.state is State.RUNNING else 0.0

    def _cpu_seconds(self) -> float:
        try:
            return time.clock_gettime(self._cpu_clock)
        except OSError:  # the thread has just ended
            return NAN

    def _behind(self) -> list[int]:
        return [max(0, position - committed) for position, committed in self._positions()] if self._positions else []

    def _unacknowledged(self) -> float:
        """Return the number of records given to Kafka that it has not acknowledged.

        The producer counts its own events with its records. So what was once seen as written stays written.
        """
        try:
            buffered = self._buffered() if self._buffered is not None else 0
        except RuntimeError:  # the producer has just been closed
            buffered = 0
        given = self._given.total
        if given - buffered > self._written:
            self._written, self._moved_at = given - buffered, max(self._moved_at, time.monotonic())
        return given - self._written


class StateTime:
    """A task's state, and the time that it has spent in each. ``now`` is monotonic seconds throughout."""

    def __init__(self, now: float) -> None:
        self.state = State.UNASSIGNED
        self._began = self._since = now
        self._seconds: dict[State, float] = {}

    def enter(self, state: State, now: float) -> None:
        """Record that the task is in ``state`` from now on."""
        self._seconds[self.state] = self.seconds(self.state, now)
        self.state, self._since = state, now

    def seconds(self, state: State, now: float) -> float:
        """Return how long the task has been in ``state`` since its start."""
        return self._seconds.get(state, 0.0) + (now - self._since if state is self.state else 0.0)

    def ratio(self, state: State, now: float) -> float:
        """Return the share of the time since the task's start in which it was in ``state``."""
        return self.seconds(state, now) / (now - self._began) if now > self._began else 0.0

    def all(self, now: float) -> dict[State, float]:
        """Return the seconds in each state in which the task has been."""
        return {state: self.seconds(state, now) for state in {*self._seconds, self.state}}
