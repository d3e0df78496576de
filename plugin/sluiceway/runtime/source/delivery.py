"""When what a source task read counts as done: its records in Kafka and its offsets stored. At least once, or exactly once."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from sluiceway.api import SourceRecord
from sluiceway.errors import ConnectError, FencedError, InternalTopicError, KafkaClientError
from sluiceway.kafka.producer_transactions import ProducerTransactions
from sluiceway.runtime.source.offset_storage import OffsetStorageWriter
from sluiceway.runtime.source.record_sender import Acknowledge, RecordSender
from sluiceway.runtime.source.submitted_records import SubmittedRecords
from sluiceway.runtime.source.transaction_boundary import CommitAction, TransactionBoundary
from sluiceway.storage.interfaces import TransactionalOffsets

log = logging.getLogger(__name__)

Check = Callable[[], None]
"""Raises to end waiting: the task is to be abandoned."""

Settled = Callable[[float, Check], bool]
"""``RetryWithToleranceOperator.settle``."""

_SLICE_SECONDS = 1.0

# What librdkafka calls it when the cluster was away for as long as a transaction may last.
_GAVE_UP = frozenset(
    {
        "_MSG_TIMED_OUT",
        "_TIMED_OUT",
        "_TRANSPORT",
        "_ALL_BROKERS_DOWN",
        "INVALID_PRODUCER_ID_MAPPING",
        "TRANSACTION_ABORTABLE",
        "INVALID_TXN_STATE",
    }
)

_SILENT = ("_FATAL", "_STATE")  # the producer cannot go on, for a reason that it gave before


class TransactionLostError(ConnectError):
    """The task's transaction is gone for no fault of the task's; a task that is placed anew goes on where the last one ended."""


class Delivery(Protocol):
    """How a source loop delivers. One thread, on an executor."""

    def start(self) -> None:
        """Shut out earlier tasks; called before the task reads its offsets."""

    def split(self, records: Sequence[SourceRecord]) -> list[tuple[Sequence[SourceRecord], CommitAction]]:
        """Return a batch in parts, each with what follows it."""

    def send(self, batch: SubmittedRecords) -> None:
        """Produce a part of a batch. Raises ConnectError for a record that cannot be."""

    def send_last(self, batch: SubmittedRecords) -> None:
        """Produce what came before a record that failed, as far as that may stand without it."""

    def after_batch(self, poll_seconds: float) -> CommitAction: ...

    def when_idle(self) -> CommitAction: ...

    def at_rest(self) -> CommitAction: ...

    def settle(self, action: CommitAction) -> bool:
        """Do it; True if offsets were committed. Raises ConnectError."""

    def finish(self) -> bool:
        """Commit what may be committed when the task stops, and drop the rest; True if offsets were committed."""

    def give_up(self, error: Exception) -> bool:
        """The task failed with this error: commit what is safe all the same; True if offsets were committed."""


class AtLeastOnceDelivery:
    """Every ``interval``: waits until Kafka has all records, then stores the offsets. What fails is tried again later.

    ``interval`` and ``timeout`` in seconds.
    """

    def __init__(
        self,
        sender: RecordSender,
        offsets: OffsetStorageWriter,
        *,
        interval: float,
        timeout: float,
        settled: Settled,
        check: Check,
    ) -> None:
        self._sender = sender
        self._offsets = offsets
        self._interval = interval
        self._timeout = timeout
        self._settled = settled
        self._check = check
        self._next = time.monotonic() + interval

    def start(self) -> None:
        """There is nothing to shut out."""

    def split(self, records: Sequence[SourceRecord]) -> list[tuple[Sequence[SourceRecord], CommitAction]]:
        return [(records, CommitAction.CONTINUE)]

    def send(self, batch: SubmittedRecords) -> None:
        self._sender.send(batch)

    def send_last(self, batch: SubmittedRecords) -> None:
        self._sender.send(batch)

    def after_batch(self, poll_seconds: float) -> CommitAction:
        return self.when_idle()

    def when_idle(self) -> CommitAction:
        return CommitAction.COMMIT if time.monotonic() >= self._next else CommitAction.CONTINUE

    def at_rest(self) -> CommitAction:
        return CommitAction.COMMIT

    def settle(self, action: CommitAction) -> bool:
        if action is CommitAction.CONTINUE:
            return False
        self._next = time.monotonic() + self._interval
        if not self._offsets.pending:
            return False
        if not self._sender.flush(self._timeout, self._check):
            log.error(
                "Not committing offsets: Kafka has not acknowledged all records within offset.flush.timeout.ms (%g s)",
                self._timeout,
            )
            return False
        if not self._settled(self._timeout, self._check):
            log.error(
                "Not committing offsets: Kafka has not acknowledged all dead letters within offset.flush.timeout.ms (%g s)",
                self._timeout,
            )
            return False
        try:
            self._offsets.write()
        except (FencedError, InternalTopicError):
            raise
        except ConnectError as error:
            log.error("Offsets were not stored and will be tried again with the next commit: %s", error)
            return False
        return True

    def finish(self) -> bool:
        return self.settle(CommitAction.COMMIT)

    def give_up(self, error: Exception) -> bool:
        """What was sent before the failure is safe."""
        if self._sender.failed or isinstance(error, FencedError):
            return False
        return self.settle(CommitAction.COMMIT)


class ExactlyOnceDelivery:
    """Writes records and their offsets in one transaction. It is all or nothing: what fails ends the task.

    Raises FencedError once another task with the same transactional id has started, TransactionLostError when the cluster
    has given the transaction up. ``acknowledged`` are the calls that tell the task of its records; they are made once the
    transaction is committed.
    """

    def __init__(
        self,
        sender: RecordSender,
        offsets: OffsetStorageWriter,
        store: TransactionalOffsets,
        transactions: ProducerTransactions,
        boundary: TransactionBoundary,
        *,
        acknowledged: list[Callable[[], None]],
        settled: Settled,
        check: Check,
    ) -> None:
        self._sender = sender
        self._offsets = offsets
        self._store = store
        self._transactions = transactions
        self._boundary = boundary
        self._acknowledged = acknowledged
        self._settled = settled
        self._check = check
        self._whole = True  # whether the open transaction ends where a batch does
        self.split = boundary.split
        self.after_batch = boundary.after_batch
        self.when_idle = boundary.when_idle
        self.at_rest = boundary.at_rest

    def start(self) -> None:
        self._transactions.fence(self._check)

    def send(self, batch: SubmittedRecords) -> None:
        try:
            if batch.records and not self._transactions.open:
                self._transactions.begin()
                self._boundary.began()
            self._whole = False
            self._sender.send(batch)
            self._whole = True
        except ConnectError as error:
            raise self._explained(error) from error

    def send_last(self, batch: SubmittedRecords) -> None:
        """Part of a batch may not stand alone; the batches before it may."""
        self.finish()

    def settle(self, action: CommitAction) -> bool:
        if action is CommitAction.CONTINUE or not (self._transactions.open or self._offsets.pending):
            return False
        try:
            if action is CommitAction.ABORT:
                log.info("Dropping a transaction, as the task asks")
                self._drop_records()
            self._commit()
        except ConnectError as error:
            raise self._explained(error) from error
        return True

    def finish(self) -> bool:
        committed = self._whole and self.settle(self._boundary.at_rest())
        self._roll_back()
        return committed

    def give_up(self, error: Exception) -> bool:
        if not isinstance(error, (FencedError, TransactionLostError)):
            self._roll_back()
        return False

    def _commit(self) -> None:
        started = time.monotonic()
        while not self._settled(_SLICE_SECONDS, self._check):
            self._check()
        self._transactions.begin()
        pending = self._offsets.take()
        self._transactions.send(self._store.for_transaction(self._offsets.connector, pending), self._check)
        self._transactions.commit(self._check)
        self._boundary.ended(time.monotonic() - started)
        self._store.committed(self._offsets.connector, pending)
        done = self._acknowledged[:]
        self._acknowledged.clear()
        for call in done:
            call()

    def _drop_records(self) -> None:
        if self._transactions.open:
            self._transactions.abort(self._check)
        self._acknowledged.clear()

    def _roll_back(self) -> None:
        """Drop records and offsets; the next task reads them again."""
        self._offsets.take()
        try:
            self._drop_records()
        except ConnectError as error:
            log.warning("The open transaction is left for the next task, or its time limit, to end: %s", error)

    def _explained(self, error: ConnectError) -> ConnectError:
        """Say what is the matter with the producer, which may say no more than that it cannot go on."""
        failure = self._sender.failure or error
        cause = failure.__cause__ if isinstance(failure.__cause__, ConnectError) else failure
        if isinstance(cause, KafkaClientError) and cause.code in _SILENT:
            cause = self._transactions.error(cause)
        if isinstance(cause, FencedError):
            return cause
        if isinstance(cause, KafkaClientError) and cause.code in _GAVE_UP:
            return TransactionLostError(f"The transaction could not be kept up: {cause}")
        return self._sender.explained(failure)


def deferred(acknowledge: Acknowledge, calls: list[Callable[[], None]]) -> Acknowledge:
    """Return an ``acknowledge`` that only notes the calls to make."""

    def note(record: SourceRecord, partition: int, offset: int) -> None:
        calls.append(lambda: acknowledge(record, partition, offset))

    return note
