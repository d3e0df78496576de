"""Delivers a source task's records and stores their offsets at least once; defines the interface of every delivery."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from sluiceway.api import SourceRecord
from sluiceway.errors import ConnectError, FencedError, InternalTopicError
from sluiceway.runtime.source.offset_storage import OffsetStorageWriter
from sluiceway.runtime.source.record_sender import RecordSender
from sluiceway.runtime.source.submitted_records import Submitted
from sluiceway.runtime.source.transaction_boundary import CommitAction

log = logging.getLogger(__name__)

Check = Callable[[], None]
"""Called while waiting; raises Abandoned to end the wait."""

FlushDeadLetterQueue = Callable[[float, Check], bool]
"""``RetryWithToleranceOperator.flush``."""


class Delivery(Protocol):
    """Delivers a source task's records and offsets with one guarantee. Runs on an executor. Not thread-safe."""

    def start(self) -> None:
        """Fence out earlier instances of the task. Call before the task reads its offsets."""

    def split(self, records: Sequence[SourceRecord]) -> list[tuple[Sequence[SourceRecord], CommitAction]]:
        """Return a batch in parts, each with the action that follows it."""

    def send(self, batch: Submitted) -> None:
        """Produce a part of a batch. Raises ConnectError for a record that cannot be sent."""

    def send_before_failure(self, batch: Submitted) -> None:
        """Produce the records before one that failed, if they may be committed without it."""

    def after_batch(self, poll_seconds: float) -> CommitAction: ...

    def when_idle(self, *, awaited: bool = False) -> CommitAction: ...

    def when_stopping(self) -> CommitAction: ...

    @property
    def in_transaction(self) -> bool:
        """True if records that were sent wait for the commit of their transaction."""

    @property
    def behind(self) -> bool:
        """True if the last commit ended before Kafka had all records. It is continued before the task is polled again."""

    @property
    def has_uncommitted(self) -> bool:
        """Whether records or offsets were given that Kafka may not have yet."""

    def apply(self, action: CommitAction) -> bool:
        """Carry out an action. Return True if the offsets of all records that were sent are stored now. Raises ConnectError."""

    def finish(self) -> bool:
        """Commit what may be committed when the task stops and drop the rest. Return True if offsets were committed."""

    def fail(self, error: Exception) -> bool:
        """Commit what is safe although the task failed with ``error``. Return True if offsets were committed."""


class AtLeastOnceDelivery:
    """Every ``interval``, waits until Kafka has all records, then stores the offsets. A failed commit is retried later.

    ``interval`` and ``timeout`` are in seconds. After a commit that took longer the task is ``behind``: over a slow link the
    producer's buffer would always be full, and no offset ever stored.
    """

    def __init__(
        self,
        sender: RecordSender,
        offsets: OffsetStorageWriter,
        *,
        interval: float,
        timeout: float,
        flush_dead_letter_queue: FlushDeadLetterQueue,
        check: Check,
    ) -> None:
        self._sender = sender
        self._offsets = offsets
        self._interval = interval
        self._timeout = timeout
        self._flush_dead_letter_queue = flush_dead_letter_queue
        self._check = check
        self._next_commit = time.monotonic() + interval
        self.behind = False

    def start(self) -> None:
        """Do nothing: without transactions, earlier instances cannot be fenced out."""

    def split(self, records: Sequence[SourceRecord]) -> list[tuple[Sequence[SourceRecord], CommitAction]]:
        return [(records, CommitAction.CONTINUE)]

    def send(self, batch: Submitted) -> None:
        self._sender.send(batch)

    def send_before_failure(self, batch: Submitted) -> None:
        self._sender.send(batch)

    def after_batch(self, poll_seconds: float) -> CommitAction:
        return self.when_idle()

    def when_idle(self, *, awaited: bool = False) -> CommitAction:
        return CommitAction.COMMIT if awaited or time.monotonic() >= self._next_commit else CommitAction.CONTINUE

    def when_stopping(self) -> CommitAction:
        return CommitAction.COMMIT

    @property
    def in_transaction(self) -> bool:
        return False

    @property
    def has_uncommitted(self) -> bool:
        return self.behind or bool(self._offsets.pending)

    def apply(self, action: CommitAction) -> bool:
        if action is CommitAction.CONTINUE:
            return False
        self._next_commit = time.monotonic() + self._interval
        self.behind = not self._flushed()
        if self.behind:
            return False
        if not self._offsets.pending:  # records may have none, and a task's commit() is called all the same, as in Connect
            return True
        try:
            self._offsets.write()
        except (FencedError, InternalTopicError):
            raise
        except ConnectError as error:
            log.error("Offsets were not stored; the next commit tries again: %s", error)
            return False
        return True

    def _flushed(self) -> bool:
        for what, flush in ("records", self._sender.flush), ("dead letter queue records", self._flush_dead_letter_queue):
            if not flush(self._timeout, self._check):
                log.error(
                    "Not committing offsets: Kafka has not acknowledged all %s within offset.flush.timeout.ms (%g s)",
                    what,
                    self._timeout,
                )
                return False
        return True

    def finish(self) -> bool:
        return self.apply(CommitAction.COMMIT)

    def fail(self, error: Exception) -> bool:
        """Commit the records sent before the failure, unless one of them was lost."""
        if self._sender.failed or isinstance(error, FencedError) or not (self._offsets.pending or self._sender.acknowledges):
            return False
        return self.apply(CommitAction.COMMIT)
