"""Ends a micro-batch at the end that the log had when the batch started, not at the first pause of the log."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from sluiceway.api import SourceTaskContext
from sluiceway.config.connector import MICRO_BATCH, MODE

Records = TypeVar("Records")

_WAIT_SECONDS = 0.1
_MOST_WAITS = 600  # then one poll without records, so that a log that stands still ends the batch some time


class CatchUp:
    """The polls of a task in a micro-batch, which ends after empty polls.

    Args:
        reached: tells whether all records up to that end have been returned by earlier polls.
    """

    def __init__(self, config: Mapping[str, str], context: SourceTaskContext, reached: Callable[[], bool]) -> None:
        self.wanted = config.get(MODE) == MICRO_BATCH
        self._context = context
        self._reached = reached
        self.done = False
        """Whether the end is reached."""

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
