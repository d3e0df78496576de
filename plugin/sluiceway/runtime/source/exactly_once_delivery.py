"""Delivers a source task's records exactly once: records and their offsets are written in one transaction."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from sluiceway.api import SourceRecord
from sluiceway.errors import ConnectError, FencedError, KafkaClientError
from sluiceway.kafka.producer_transactions import WITHOUT_CAUSE, ProducerTransactions
from sluiceway.runtime.source.delivery import Check, FlushDeadLetterQueue
from sluiceway.runtime.source.offset_storage import OffsetStorageWriter
from sluiceway.runtime.source.record_sender import RecordSender
from sluiceway.runtime.source.submitted_records import Acknowledge, Submitted
from sluiceway.runtime.source.transaction_boundary import CommitAction, TransactionBoundary
from sluiceway.storage.interfaces import TransactionalOffsets

log = logging.getLogger(__name__)

_REPORT_SECONDS = 1.0  # for the report of the record that ended the transaction, which may come after the error
_SLICE_SECONDS = 1.0

# librdkafka's codes after the cluster was unreachable for as long as a transaction may last.
_TRANSACTION_TIMED_OUT = frozenset(
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


class TransactionLostError(ConnectError):
    """The cluster ended the task's transaction. The task is not at fault; a new instance continues from the stored offsets."""


class ExactlyOnceDelivery:
    """Writes records and their offsets in one transaction. Any failure ends the task.

    Raises FencedError once another task with the same transactional id has started, and TransactionLostError if the cluster
    ended the transaction. ``acknowledgements`` are made after the transaction is committed.
    """

    def __init__(
        self,
        sender: RecordSender,
        offsets: OffsetStorageWriter,
        store: TransactionalOffsets,
        transactions: ProducerTransactions,
        boundary: TransactionBoundary,
        *,
        acknowledgements: list[Callable[[], None]],
        flush_dead_letter_queue: FlushDeadLetterQueue,
        check: Check,
    ) -> None:
        self._sender = sender
        self._offsets = offsets
        self._store = store
        self._transactions = transactions
        self._boundary = boundary
        self._acknowledgements = acknowledgements
        self._flush_dead_letter_queue = flush_dead_letter_queue
        self._check = check
        self.behind = False  # a commit waits until Kafka has all records
        self._at_batch_end = True  # the open transaction holds only whole batches, or parts that the task ends it after
        self.split = boundary.split
        self.after_batch = boundary.after_batch
        self.when_idle = boundary.when_idle
        self.when_stopping = boundary.when_stopping

    def start(self) -> None:
        self._transactions.fence(self._check)

    def send(self, batch: Submitted) -> None:
        try:
            if not batch.empty and not self._transactions.open:
                self._transactions.begin()
                self._boundary.transaction_begun()
            self._at_batch_end = False
            self._sender.send(batch)
            self._at_batch_end = batch.ends_batch
        except ConnectError as error:
            raise self._explained(error) from error

    def send_before_failure(self, batch: Submitted) -> None:
        """Send nothing: part of a batch must not be committed without the rest. Commits the batches before it."""
        self.finish()

    @property
    def in_transaction(self) -> bool:
        return self._transactions.open

    @property
    def has_uncommitted(self) -> bool:
        return self._transactions.open or bool(self._offsets.pending)

    def apply(self, action: CommitAction) -> bool:
        if action is CommitAction.CONTINUE or not self.has_uncommitted:
            return False
        try:
            if action is CommitAction.ABORT:
                log.info("Aborting a transaction, as the task requested")
                self._transactions.await_delivery()
                self._abort()
            self._commit()
        except ConnectError as error:
            raise self._explained(error) from error
        return True

    def finish(self) -> bool:
        committed = self._at_batch_end and self.apply(self._boundary.when_stopping())
        self._roll_back()
        return committed

    def fail(self, error: Exception) -> bool:
        if not isinstance(error, (FencedError, TransactionLostError)):
            self._roll_back()
        return False

    def _commit(self) -> None:
        started = time.monotonic()
        while not self._flush_dead_letter_queue(_SLICE_SECONDS, self._check):
            self._check()
        self._transactions.begin()
        pending = self._offsets.take()
        self._transactions.send(self._store.for_transaction(self._offsets.connector, pending), self._check)
        self._transactions.commit(self._check)
        self._boundary.transaction_ended(time.monotonic() - started)
        self._store.committed(self._offsets.connector, pending)
        acknowledgements = self._acknowledgements[:]
        self._acknowledgements.clear()
        for acknowledge in acknowledgements:
            acknowledge()

    def _abort(self) -> None:
        if self._transactions.open:
            self._transactions.abort(self._check)
        self._acknowledgements.clear()

    def _roll_back(self) -> None:
        """Drop records and offsets. The next instance of the task reads them again."""
        self._offsets.take()
        try:
            self._abort()
        except ConnectError as error:
            log.warning("Could not abort the open transaction; the next task or transaction.timeout.ms ends it: %s", error)

    def _explained(self, error: ConnectError) -> ConnectError:
        """Return the cause of an error, because the producer may only report that it cannot continue."""
        if _without_cause(_cause(error)):
            self._sender.await_failure(_REPORT_SECONDS)
        failure = self._sender.failure or error
        cause = _cause(failure)
        if _without_cause(cause):
            known = self._transactions.error(cause)
            if known is not cause:
                cause = failure = known
        if isinstance(cause, FencedError):
            return cause
        if isinstance(cause, KafkaClientError) and cause.code in _TRANSACTION_TIMED_OUT:
            return TransactionLostError(f"The cluster ended the task's transaction: {cause}")
        return self._sender.with_advice(failure)


def _cause(error: ConnectError) -> ConnectError:
    return error.__cause__ if isinstance(error.__cause__, ConnectError) else error


def _without_cause(error: ConnectError) -> bool:
    return isinstance(error, KafkaClientError) and error.code in WITHOUT_CAUSE


def deferred(acknowledge: Acknowledge, acknowledgements: list[Callable[[], None]]) -> Acknowledge:
    """Return an ``acknowledge`` that appends its call to ``acknowledgements`` instead of making it."""

    def append(record: SourceRecord, partition: int, offset: int) -> None:
        acknowledgements.append(lambda: acknowledge(record, partition, offset))

    return append
