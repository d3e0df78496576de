"""Decides where an exactly-once source task's transactions end (``transaction.boundary``). No I/O except the clock.

Transactions end only between two batches that ``poll`` returned, or where the task requests it.
"""

from __future__ import annotations

import enum
import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from sluiceway.api import SourceRecord
from sluiceway.errors import ConnectError

_IMMEDIATE_SECONDS = 0.02
_BURST_POLLS = 3
_LONG_BURST_POLLS = 20
_SLOW_POLL_COST = 10  # immediate polls
_COMMIT_MULTIPLE = 40.0
_LONGEST_SECONDS = 0.5


class CommitAction(enum.Enum):
    """The action on the open transaction, or on the offsets that are not committed yet."""

    CONTINUE = "continue"
    COMMIT = "commit"
    ABORT = "abort"
    """Drop the transaction's records and store their offsets."""


class TransactionBoundary(Protocol):
    """Decides what follows each batch. The delivery reports when transactions begin and end."""

    def transaction_begun(self) -> None: ...

    def transaction_ended(self, seconds: float) -> None:
        """Record that a transaction was committed or aborted, which took ``seconds``."""

    def split(self, records: Sequence[SourceRecord]) -> list[tuple[Sequence[SourceRecord], CommitAction]]:
        """Return a batch in parts, each with the action that follows it."""

    def after_batch(self, poll_seconds: float) -> CommitAction:
        """Return the action after a batch that has been sent; ``poll`` took ``poll_seconds`` to return it."""

    def when_idle(self, *, awaited: bool = False) -> CommitAction:
        """Return the action after a poll that returned no records. ``awaited``: the source waits for its offset's commit."""

    def when_stopping(self) -> CommitAction:
        """Return the action when the task is paused or stopped between two batches."""


class _BatchBoundary:
    """Base of boundaries that do not split batches, and may end a transaction between any two of them."""

    def transaction_begun(self) -> None: ...

    def transaction_ended(self, seconds: float) -> None: ...

    def split(self, records: Sequence[SourceRecord]) -> list[tuple[Sequence[SourceRecord], CommitAction]]:
        return [(records, CommitAction.CONTINUE)]

    def when_stopping(self) -> CommitAction:
        return CommitAction.COMMIT


class PollBoundary(_BatchBoundary):
    """Commits after each batch, as Connect does, except that batches in quick succession share a transaction.

    A commit takes milliseconds whatever its size, so a task that returns small batches faster would do little else. After
    several polls in a row that returned at once, batches share a transaction until it has lasted ``_COMMIT_MULTIPLE`` times
    as long as the last commit took, at most half a second. Each batch is still in a single transaction, which is all that
    Connect's contract promises. The last batches of a burst are committed after the next poll, empty or not. One slow poll
    does not end a long burst: on a busy machine, it may only have waited for the processor. With ``each_batch``, none is shared:
    the next poll of a Java task may wait for the acknowledgement of the last batch.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, *, each_batch: bool = False) -> None:
        self._clock = clock
        self._each_batch = each_batch
        self._begun = 0.0
        self._immediate_polls = 0
        self._longest = 0.0

    def transaction_begun(self) -> None:
        self._begun = self._clock()

    def transaction_ended(self, seconds: float) -> None:
        self._longest = min(_LONGEST_SECONDS, _COMMIT_MULTIPLE * seconds)

    def after_batch(self, poll_seconds: float) -> CommitAction:
        if poll_seconds < _IMMEDIATE_SECONDS:
            self._immediate_polls = min(self._immediate_polls + 1, _LONG_BURST_POLLS)
        else:
            self._immediate_polls = max(self._immediate_polls - _SLOW_POLL_COST, 0)
        burst = self._immediate_polls > _BURST_POLLS and not self._each_batch
        return CommitAction.CONTINUE if burst and self._clock() - self._begun < self._longest else CommitAction.COMMIT

    def when_idle(self, *, awaited: bool = False) -> CommitAction:
        self._immediate_polls = 0
        return CommitAction.COMMIT


class IntervalBoundary(_BatchBoundary):
    """Commits once a transaction has lasted ``seconds``."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._next_commit = clock() + seconds

    def transaction_ended(self, seconds: float) -> None:
        self._next_commit = self._clock() + self._seconds

    def after_batch(self, poll_seconds: float) -> CommitAction:
        return self.when_idle()

    def when_idle(self, *, awaited: bool = False) -> CommitAction:
        return CommitAction.COMMIT if awaited or self._clock() >= self._next_commit else CommitAction.CONTINUE


class ConnectorBoundary:
    """Ends transactions where the task requests it. Implements the task's ``TransactionContext``, which is thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._after_batch = CommitAction.CONTINUE
        # The record is kept with its action, so that no other object can get its id.
        self._after_record: dict[int, tuple[SourceRecord, CommitAction]] = {}

    def commit_transaction(self, record: SourceRecord | None = None) -> None:
        """Implement ``TransactionContext``."""
        self._request(record, CommitAction.COMMIT)

    def abort_transaction(self, record: SourceRecord | None = None) -> None:
        """Implement ``TransactionContext``."""
        self._request(record, CommitAction.ABORT)

    def transaction_begun(self) -> None: ...

    def transaction_ended(self, seconds: float) -> None: ...

    def split(self, records: Sequence[SourceRecord]) -> list[tuple[Sequence[SourceRecord], CommitAction]]:
        with self._lock:
            if not self._after_record:
                return [(records, CommitAction.CONTINUE)]
            parts: list[tuple[Sequence[SourceRecord], CommitAction]] = []
            start = 0
            for index, record in enumerate(records, 1):
                requested = self._after_record.pop(id(record), None)
                if requested is not None:
                    parts.append((records[start:index], requested[1]))
                    start = index
        return [*parts, (records[start:], CommitAction.CONTINUE)] if start < len(records) else parts

    def after_batch(self, poll_seconds: float) -> CommitAction:
        with self._lock:
            action, self._after_batch = self._after_batch, CommitAction.CONTINUE
        return action

    def when_idle(self, *, awaited: bool = False) -> CommitAction:
        return CommitAction.CONTINUE  # only the task ends its transactions

    def when_stopping(self) -> CommitAction:
        return CommitAction.CONTINUE

    def _request(self, record: SourceRecord | None, action: CommitAction) -> None:
        with self._lock:
            if record is None:
                before = self._after_batch
            else:
                before = self._after_record.get(id(record), (record, CommitAction.CONTINUE))[1]
            if before not in (CommitAction.CONTINUE, action):
                raise ConnectError(
                    "The source task requested both a commit and an abort of the same transaction. It must request one of them."
                )
            if record is None:
                self._after_batch = action
            else:
                self._after_record[id(record)] = record, action
