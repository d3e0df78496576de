"""Limits what a schema of a few bytes can make of memory and time. No I/O."""

from __future__ import annotations

from sluiceway.errors import DataError


class Budget:
    """Counts the parts of a Connect schema while it is made: types that refer to others twice double it with each level."""

    MOST = 20_000

    def __init__(self) -> None:
        self._left = self.MOST

    def spend(self) -> None:
        """Count a part. Raises DataError for too many."""
        self._left -= 1
        if self._left < 0:
            raise DataError(f"The schema has more than {self.MOST} fields, with those of the types that it refers to.")
