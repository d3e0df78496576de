"""Ends a micro-batch at the end that the log had when the batch started, or at the end of the run's interval."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from sluiceway.api import SourceTaskContext
from sluiceway.config.connector import MICRO_BATCH, MODE
from sluiceway.config.intervals import interval_of

Records = TypeVar("Records")

_WAIT_SECONDS = 0.1
_MOST_WAITS = 600  # then one poll without records, so that a log that stands still ends the batch some time


class CatchUp:
    """The polls of a task in a micro-batch, which ends after empty polls.

    Args:
        reached: tells whether all records up to that end have been returned by earlier polls.
    """

    def __init__(self, config: Mapping[str, str], context: SourceTaskContext, reached: Callable[[], bool]) -> None:
        interval = interval_of(config)
        self.wanted = interval is not None or config.get(MODE) == MICRO_BATCH
        self.has_interval = interval is not None
        self.passed = False
        """Whether the log was read up to the first transaction behind the interval of the run."""
        self._end = 0 if interval is None else interval.end * 1000
        self._now = time.time_ns() // 1000
        self._context = context
        self._reached = reached
        self.done = False
        """Whether the end is reached."""

    def passes(self, micros: int) -> bool:
        """Return whether a transaction that was committed at this time is behind the interval of the run, if it has one.

        The first such transaction ends the interval: what the log has behind it belongs to the next one. One from the future,
        of a session with a timestamp of its own or a clock that was wrong, ends nothing.
        """
        self.passed = self.passed or (self.has_interval and self._end <= micros <= self._now)
        return self.passed

    def poll(self, poll: Callable[[], Records]) -> Records | None:
        """Return the records of a poll; none behind the end. Wait for records before it, even while the log pauses."""
        if not self.wanted:
            return poll()
        for _ in range(_MOST_WAITS):
            self.done = self.done or self._reached()
            if self.done:
                return None
            records = poll()
            if records:
                return records
            self._context.wait(_WAIT_SECONDS)
        return None


def position_time(offset: Mapping[str, object]) -> int | None:
    """Return the commit time of the last transaction that was read, in milliseconds since the epoch; None in a snapshot."""
    if offset.get("snapshot") and not offset.get("snapshot_completed"):
        return None
    micros, seconds = offset.get("ts_usec"), offset.get("ts_sec")
    return micros // 1000 if isinstance(micros, int) else seconds * 1000 if isinstance(seconds, int) else None


def interval_refusal(config: Mapping[str, str]) -> str:
    """Return why a connector cannot read the changes of an interval; empty if it can."""
    mode = config.get("snapshot.mode", "").strip()
    return "snapshot.mode=initial_only reads no changes" if mode == "initial_only" else ""
