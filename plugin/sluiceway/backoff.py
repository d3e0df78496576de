"""Growing pauses between attempts, in seconds. No I/O."""

from __future__ import annotations

from dataclasses import dataclass

_MOST_DOUBLINGS = 40  # more than any limit allows; keeps the power of two within a float


@dataclass(slots=True)
class Backoff:
    """The pauses after failures in a row: ``first``, then each twice the one before, up to ``longest``."""

    first: float
    longest: float
    failures: int = 0

    def next(self) -> float:
        """Count a failure, and return the pause after it."""
        self.failures += 1
        return pause_after(self.failures, self.first, self.longest)

    def reset(self) -> None:
        """Begin again with ``first``, because an attempt has succeeded."""
        self.failures = 0


def pause_after(failures: int, first: float, longest: float) -> float:
    """Return the pause after a number of failures in a row, from 1."""
    return min(first * 2.0 ** min(failures - 1, _MOST_DOUBLINGS), longest)
