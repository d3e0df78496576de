"""How many records a sink task is given at once, so that it is back before its consumer group takes it for dead."""

from __future__ import annotations

_FIRST = 10


class BatchSize:
    """Starts small and doubles, up to ``most``, while a batch takes much less than ``seconds``; shrinks where it takes more.

    A consumer that is not polled within ``max.poll.interval.ms`` loses its partitions, its work is done again by others,
    and again. So ``seconds`` is a part of that: large enough for a target whose every call is slow, however few the records.
    """

    def __init__(self, most: int, seconds: float) -> None:
        self._most = max(1, most)
        self._seconds = seconds
        self.size = min(_FIRST, self._most)

    def took(self, records: int, seconds: float) -> None:
        """Note how long the task had to do with so many records."""
        if seconds > self._seconds:
            self.size = max(1, min(self.size, int(records * self._seconds / seconds)))
        elif records >= self.size and seconds < self._seconds / 4:
            self.size = min(self._most, self.size * 2)
