"""Decides when a task's batches are handled as columns instead of record by record. Does not load Arrow."""

from __future__ import annotations

import importlib.util

FEWEST_RECORDS = 200
"""Smaller batches are handled record by record, because each batch of columns has a fixed cost."""

_LONGEST_PAUSE = 256


def columns_available() -> bool:
    """Return True if Arrow is installed (the extra ``columns``)."""
    return importlib.util.find_spec("pyarrow") is not None


class ColumnAttempts:
    """Decides which batches to try as columns: fewer and fewer while every attempt fails, all of them after a success."""

    def __init__(self) -> None:
        self._pause = 0
        self._left = 0

    def next(self) -> bool:
        """Count a large batch; return True to try it as columns."""
        if self._left:
            self._left -= 1
            return False
        return True

    def succeeded(self) -> None:
        self._pause = 0

    def failed(self) -> None:
        """Record that no part of a batch could be handled as columns."""
        self._pause = min(max(1, self._pause * 2), _LONGEST_PAUSE)
        self._left = self._pause
