"""Where an exactly-once source task's transactions end (``transaction.boundary``). Pure, but for the clock.

Whatever the boundary is, a transaction ends only between two batches that ``poll`` returned, or where the task itself says.
"""

from __future__ import annotations

import enum
import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from sluiceway.api import SourceRecord
from sluiceway.errors import ConnectError

_AT_ONCE_SECONDS = 0.02
_BURST_POLLS = 3
_SHARE = 15.0
_LONGEST_SECONDS = 0.5


class CommitAction(enum.Enum):
    """What is to become of the open transaction."""

    CONTINUE = "continue"
    COMMIT = "commit"
    ABORT = "abort"
    """Drop its records and store their offsets."""


class TransactionBoundary(Protocol):
    """Asked by the loop. ``began`` and ``ended`` tell it of transactions."""

    def began(self) -> None: ...

    def ended(self, seconds: float) -> None:
        """A transaction was committed or aborted, which took so long."""

    def split(self, records: Sequence[SourceRecord]) -> list[tuple[Sequence[SourceRecord], CommitAction]]:
        """Return a batch in parts, each with what follows it."""

    def after_batch(self, poll_seconds: float) -> CommitAction:
        """Say what follows a batch that is sent in full; ``poll`` took ``poll_seconds`` to return it."""

    def when_idle(self) -> CommitAction:
        """Say what follows a poll that gave nothing."""

    def at_rest(self) -> CommitAction:
        """Say what follows when the task is paused or stopped between two batches."""


class _Whole:
    """A boundary that leaves batches whole and whose transactions may end at any time between them."""

    def began(self) -> None: ...

    def ended(self, seconds: float) -> None: ...

    def split(self, records: Sequence[SourceRecord]) -> list[tuple[Sequence[SourceRecord], CommitAction]]:
        return [(records, CommitAction.CONTINUE)]

    def at_rest(self) -> CommitAction:
        return CommitAction.COMMIT


class PollBoundary(_Whole):
    """Commits after each batch, as Connect does, but lets a flood share its transactions.

    A commit costs milliseconds whatever its size, so a task that returns small batches faster than that would do little else.
    Once several polls in a row have returned at once, batches are taken together, until the transaction has lasted
    ``_SHARE`` times as long as the last commit took, half a second at most. A batch is in one transaction all the same,
    and nobody could tell more by Connect's contract. The last batches of a flood wait for the next poll's answer, if
    there is one or not.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = 0.0
        self._at_once = 0
        self._patience = 0.0

    def began(self) -> None:
        self._began = self._clock()

    def ended(self, seconds: float) -> None:
        self._patience = min(_LONGEST_SECONDS, _SHARE * seconds)

    def after_batch(self, poll_seconds: float) -> CommitAction:
        self._at_once = self._at_once + 1 if poll_seconds < _AT_ONCE_SECONDS else 0
        flood = self._at_once > _BURST_POLLS
        return CommitAction.CONTINUE if flood and self._clock() - self._began < self._patience else CommitAction.COMMIT

    def when_idle(self) -> CommitAction:
        self._at_once = 0
        return CommitAction.COMMIT


class IntervalBoundary(_Whole):
    """Commits once a transaction has lasted ``seconds``."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._next = clock() + seconds

    def ended(self, seconds: float) -> None:
        self._next = self._clock() + self._seconds

    def after_batch(self, poll_seconds: float) -> CommitAction:
        return self.when_idle()

    def when_idle(self) -> CommitAction:
        return CommitAction.COMMIT if self._clock() >= self._next else CommitAction.CONTINUE


class ConnectorBoundary:
    """Ends transactions where the task says. It is the task's ``TransactionContext``, too; thread-safe in that part."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._batch = CommitAction.CONTINUE
        self._records: dict[int, tuple[SourceRecord, CommitAction]] = {}

    def commit_transaction(self, record: SourceRecord | None = None) -> None:
        """See ``TransactionContext``."""
        self._request(record, CommitAction.COMMIT)

    def abort_transaction(self, record: SourceRecord | None = None) -> None:
        """See ``TransactionContext``."""
        self._request(record, CommitAction.ABORT)

    def began(self) -> None: ...

    def ended(self, seconds: float) -> None: ...

    def split(self, records: Sequence[SourceRecord]) -> list[tuple[Sequence[SourceRecord], CommitAction]]:
        with self._lock:
            if not self._records:
                return [(records, CommitAction.CONTINUE)]
            parts: list[tuple[Sequence[SourceRecord], CommitAction]] = []
            start = 0
            for index, record in enumerate(records, 1):
                asked = self._records.pop(id(record), None)
                if asked is not None:
                    parts.append((records[start:index], asked[1]))
                    start = index
        return [*parts, (records[start:], CommitAction.CONTINUE)] if start < len(records) else parts

    def after_batch(self, poll_seconds: float) -> CommitAction:
        with self._lock:
            asked, self._batch = self._batch, CommitAction.CONTINUE
        return asked

    def when_idle(self) -> CommitAction:
        return CommitAction.CONTINUE

    def at_rest(self) -> CommitAction:
        return CommitAction.CONTINUE

    def _request(self, record: SourceRecord | None, action: CommitAction) -> None:
        with self._lock:
            before = self._batch if record is None else self._records.get(id(record), (record, CommitAction.CONTINUE))[1]
            if before not in (CommitAction.CONTINUE, action):
                raise ConnectError("The task asked for one and the same transaction to be committed and to be aborted.")
            if record is None:
                self._batch = action
            else:
                self._records[id(record)] = record, action  # the record is kept so that its id stays its own
