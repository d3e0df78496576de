"""Decides from slots and heartbeats whether a launched task runs, waits for a slot or is lost. No I/O."""

from __future__ import annotations

import enum

from sluiceway.storage.model import State, Status

_WITHOUT_SLOT_SECONDS = 2.0  # a task that is about to start, or whose end is about to be known, has no slot either
_QUEUED_SECONDS = 60.0  # a busy driver may take that long to start a task in a free slot
_REPORTED = (State.RUNNING, State.PAUSED)


class Slot(enum.Enum):
    """Whether a launched task holds a slot, as Spark reports it."""

    HELD = "the task runs, or has ended"
    QUEUED = "slots are free, but Spark has not started the task yet"
    NONE = "the task waits for its first slot, and all are in use"
    LOST = "the task ran, was lost, and waits for another slot"


class Verdict(enum.Enum):
    """The condition of a launched task."""

    FINE = "starting or running"
    WAITS = "waiting for a slot"
    LOST_SLOT = "lost with its executor, and queued again by Spark"
    SILENT = "without heartbeats"


class TaskWatch:
    """Watches one start of a task. For the runner's thread. Times are monotonic seconds of this process.

    Record timestamps are only compared for equality, because the clocks of executors and brokers may differ from this one.

    Args:
        generation: the task's; only statuses of this generation come from the watched process.
        heartbeat_timeout: seconds without a heartbeat after which the task is silent; infinite if it sends none.
    """

    def __init__(self, generation: int, heartbeat_timeout: float) -> None:
        self.waiting = False
        self._generation = generation
        self._heartbeat_timeout = heartbeat_timeout
        self._without_slot_since: float | None = None
        self._timestamp: int | None = None
        self._heard_at = 0.0

    def judge(self, slot: Slot, status: Status | None, now: float) -> Verdict:
        """Return the task's condition, given its slot and its last known status. Sets ``waiting``."""
        reported = status is not None and status.generation == self._generation and status.state in _REPORTED
        timestamp = status.timestamp if status is not None and reported else None
        if timestamp != self._timestamp:
            self._timestamp, self._heard_at = timestamp, now
        without_slot = slot is Slot.LOST or (slot is not Slot.HELD and not reported)
        if not without_slot:
            self._without_slot_since, self.waiting = None, False
        elif self._without_slot_since is None:
            self._without_slot_since = now
        elif now - self._without_slot_since >= (_QUEUED_SECONDS if slot is Slot.QUEUED else _WITHOUT_SLOT_SECONDS):
            self.waiting = slot is not Slot.LOST
            return Verdict.WAITS if self.waiting else Verdict.LOST_SLOT
        silent = timestamp is not None and now - self._heard_at > self._heartbeat_timeout
        return Verdict.SILENT if silent else Verdict.FINE

    def excuse(self, now: float) -> None:
        """Start all periods again, because this process could not watch the task, such as while Kafka was unreachable."""
        self._heard_at = now
        self._without_slot_since = None
