"""The base class of sink tasks whose system answers for each record of a request, such as a search index or a queue."""

from __future__ import annotations

import abc
import enum
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from sluiceway.api.outage import Outage
from sluiceway.api.records import SinkRecord, TopicPartition
from sluiceway.api.task import SinkTask, SinkTaskContext
from sluiceway.backoff import Backoff
from sluiceway.errors import ConnectError, DataError, RetriableError

Item = TypeVar("Item")

_Position = tuple[str, int, int, int]  # topic, partition, offset, and the number among the records of one message
_Pending = tuple[SinkRecord, Item, _Position]


class Outcome(enum.Enum):
    """The outcome of a record of a request."""

    DONE = "done"
    RETRY = "retry"
    """Not now, because it is busy or full. The record is written again, and those of its key after it."""
    REFUSED = "refused"
    """Never: the record is handled by the connector's ``errors.*`` keys."""


class WriteResult(NamedTuple):
    """The outcome of a record, and why unless it is DONE. The reason must not hold secrets."""

    outcome: Outcome
    reason: str = ""


DONE = WriteResult(Outcome.DONE)
_MISSING = (FileNotFoundError, PermissionError)  # of a file or a right, which waiting does not bring


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """The limits of a batch sink; None is unlimited.

    Attributes:
        records: the most records of a request.
        size: the most bytes of a request, by ``BatchSinkTask.size_of``; a larger record is sent alone.
        retries: how often in a row a request may be answered with RETRY for all of its records before the task fails.
        backoff: seconds before the first retry; each further pause is twice as long, up to ``longest_backoff``.
        unreachable: seconds to wait for a system that cannot be reached before the task fails.
    """

    records: int = 1000
    size: int | None = None
    retries: int | None = None
    backoff: float = 0.1
    longest_backoff: float = 10.0
    unreachable: float | None = None


class BatchSinkTask(SinkTask, Generic[Item]):
    """Writes records in requests and handles the answers: only what must be is written again, in the order of each key.

    An author sets ``limits`` in ``start``, and implements ``prepare`` and ``write``. Each ``put`` writes all of its records
    before it returns, so every offset is safe to commit, and nothing is kept in memory. While the system is busy or away,
    ``put`` raises RetriableError: the runtime waits, shows the reason in the status, and calls it with the same records, of which
    those that are done are left out. Runs on executors.
    """

    limits: BatchLimits = BatchLimits()

    def initialize(self, context: SinkTaskContext) -> None:
        super().initialize(context)
        self._done: set[_Position] = set()
        self._throttled = 0.0
        self._attempts = 0
        self._backoff: Backoff | None = None
        self._outage: Outage | None = None

    @abc.abstractmethod
    def prepare(self, record: SinkRecord) -> Item | None:
        """Return what to write for a record, or None for nothing. Raise DataError if the record can never be written."""

    @abc.abstractmethod
    def write(self, items: Sequence[Item]) -> Sequence[WriteResult]:
        """Write the items of a request, and return the outcome of each, in the same order.

        Raise OSError if the system cannot be reached or does not answer: all of them are written again. What else is raised fails
        the task, as for wrong credentials; so do FileNotFoundError and PermissionError.
        """

    def size_of(self, item: Item) -> int:
        """Return the bytes of an item in a request, for ``BatchLimits.size``."""
        return 0

    def order_key(self, item: Item) -> Hashable:
        """Return the key of items that must be written one after another, such as the id of a row; None if they need not.

        After an item that is written again, the items with the same key are written again too, although the system has them.
        """
        return None

    def least_pause(self) -> float:
        """Return the seconds that the system has asked for before the next attempt. Called after a RETRY and an OSError."""
        return 0.0

    def put(self, records: Sequence[SinkRecord]) -> None:
        positions = _positions(records)
        for batch in self._batches(records, positions):
            try:
                results = self.write([item for _record, item, _position in batch])
            except _MISSING:
                raise
            except OSError as error:
                raise self._unreachable(error) from error
            self._system_answered()
            self._take(batch, results)
        self._done.difference_update(positions)

    def close(self, partitions: Collection[TopicPartition]) -> None:
        """Forget what was done in a put that has not ended. Subclasses that override this call it."""
        lost = {tuple(each) for each in partitions}
        self._done = {each for each in self._done if each[:2] not in lost}

    def metrics(self) -> Mapping[str, float]:
        """Return ``sink-throttled-ms``: the milliseconds that the system made the task wait. Subclasses may add others."""
        return {"sink-throttled-ms": self._throttled * 1000}

    def refused(self, record: SinkRecord, error: ConnectError) -> None:
        """Handle a record that can never be written. By default it is reported; without a reporter, the error is raised."""
        reporter = self.context.errant_record_reporter
        if reporter is None:
            raise error
        reporter.report(record, error)

    def _batches(self, records: Sequence[SinkRecord], positions: Sequence[_Position]) -> Iterator[list[_Pending[Item]]]:
        """Yield the records that are left to do with their items, as many as a request may have."""
        batch: list[_Pending[Item]] = []
        size = 0
        for record, position in zip(records, positions, strict=True):
            if position in self._done:
                continue
            try:
                item = self.prepare(record)
            except DataError as error:
                self.refused(record, error)
                self._done.add(position)
                continue
            if item is None:
                continue
            bytes_ = self.size_of(item)
            full = self.limits.size is not None and size + bytes_ > self.limits.size
            if batch and (full or len(batch) >= self.limits.records):
                yield batch
                batch, size = [], 0
            batch.append((record, item, position))
            size += bytes_
        if batch:
            yield batch

    def _take(self, batch: Sequence[_Pending[Item]], results: Sequence[WriteResult]) -> None:
        """Note what is done, report what was refused, and raise RetriableError if some must be written again."""
        if isinstance(results, list) and results.count(DONE) == len(results) == len(batch):
            self._done.update(position for _record, _item, position in batch)
            self._attempts, self._backoff = 0, None
            return
        given = list(results) if isinstance(results, Iterable) else []
        if len(given) != len(batch) or not all(isinstance(each, WriteResult) for each in given):
            told = f"{len(given)} results" if isinstance(results, Iterable) else type(results).__name__
            what = f"{type(self).__name__}.write()"
            raise ConnectError(f"{what} must return a WriteResult for each of {len(batch)} items, but returned {told}.")
        reason, left, behind = "", 0, set[Hashable]()
        for (record, item, position), result in zip(batch, given, strict=True):
            key = self.order_key(item)
            if result.outcome is Outcome.RETRY or (key is not None and key in behind):
                left += 1
                reason = reason or result.reason
                if key is not None:
                    behind.add(key)
                continue
            if result.outcome is Outcome.REFUSED:
                self.refused(record, ConnectError(f"{_name(record)} was refused: {result.reason}"))
            self._done.add(position)
        if left:
            raise self._busy(left, len(batch), reason)
        self._attempts, self._backoff = 0, None

    def _busy(self, left: int, of: int, reason: str) -> ConnectError:
        """Return the error after an answer that asks to write ``left`` of ``of`` items later."""
        self._attempts = self._attempts + 1 if left == of else 0
        text = f"The system takes {left} of {of} records later: {reason}"
        if self.limits.retries is not None and self._attempts > self.limits.retries:
            return ConnectError(f"{text} (after {self._attempts} attempts without progress)")
        if left < of:
            self._backoff = None
        return self._later(text)

    def _unreachable(self, error: OSError) -> ConnectError:
        self._outage = self._outage or Outage(self.limits.unreachable)
        self._outage.lasts(error)
        return self._later(str(error))

    def _system_answered(self) -> None:
        if self._outage is not None:
            self._outage.ended()

    def _later(self, text: str) -> RetriableError:
        """Return the error that makes the runtime call ``put`` again after the pause."""
        self._backoff = self._backoff or Backoff(self.limits.backoff, self.limits.longest_backoff)
        pause = max(self._backoff.next(), self.least_pause())
        self._throttled += pause
        self.context.timeout(int(pause * 1000))
        return RetriableError(text)


def _positions(records: Sequence[SinkRecord]) -> list[_Position]:
    """Return what tells the records of a put apart: a transform may have made several of one message."""
    first = [(each.original_topic, each.original_kafka_partition, each.original_kafka_offset, 0) for each in records]
    if len(set(first)) == len(first):
        return first
    counts: Counter[_Position] = Counter()
    found: list[_Position] = []
    for position in first:
        found.append((*position[:3], counts[position]))
        counts[position] += 1
    return found


def _name(record: SinkRecord) -> str:
    topic, partition = record.original_topic_partition
    return f"The record {topic}-{partition} at offset {record.original_kafka_offset}"
