"""Decides when the open files of a topic partition are committed. No I/O."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

_DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class RotationLimits:
    """The limits of a commit; None is unlimited. Times are in milliseconds.

    Attributes:
        records: ``flush.size``.
        size: the bytes of one file.
        interval: the time by the clock of the records, which may be the wall clock.
        schedule: the time by the wall clock, counted from midnight in ``zone``.
        by_record_time: whether ``interval`` follows the records' timestamps.
    """

    records: int
    size: int | None = None
    interval: int | None = None
    schedule: int | None = None
    zone: dt.tzinfo = dt.timezone.utc
    by_record_time: bool = False


class Rotation:
    """Counts what was written since the last commit of a topic partition. Times are in milliseconds since the epoch."""

    def __init__(self, limits: RotationLimits) -> None:
        self._limits = limits
        self.reset()

    def reset(self) -> None:
        """Start with no records."""
        self.records = 0
        self._base: int | None = None
        self._scheduled: int | None = None

    @property
    def room(self) -> int:
        """The number of records that fit before the next commit."""
        return self._limits.records - self.records

    def wrote(self, records: int, now: int, first_time: int | None) -> None:
        """Count records. ``first_time`` is the timestamp of the first of them, if rotation needs it."""
        if self.records == 0:
            self._base = first_time if self._limits.by_record_time else now
            if self._limits.schedule is not None:
                self._scheduled = next_scheduled(now, self._limits.schedule, self._limits.zone)
        self.records += records

    @property
    def boundary(self) -> int | None:
        """The timestamp from which on a record belongs to the next files; None if no record can end these."""
        if not self._limits.by_record_time or self._limits.interval is None or self._base is None:
            return None
        return self._base + self._limits.interval

    def due(self, now: int, largest_file: int) -> bool:
        """Return whether to commit now."""
        if self.records == 0:
            return False
        limits = self._limits
        if self.room <= 0 or (limits.size is not None and largest_file >= limits.size):
            return True
        if self._scheduled is not None and now >= self._scheduled:
            return True
        by_clock = limits.interval is not None and not limits.by_record_time and self._base is not None
        return by_clock and now >= (self._base or 0) + (limits.interval or 0)


def next_scheduled(now: int, interval: int, zone: dt.tzinfo) -> int:
    """Return the next multiple of ``interval`` since midnight in the zone, at most the next midnight."""
    local = dt.datetime.fromtimestamp(now / 1000, zone)
    midnight = int(local.replace(hour=0, minute=0, second=0, microsecond=0).timestamp() * 1000)
    following = local.replace(hour=0, minute=0, second=0, microsecond=0) + dt.timedelta(days=1)
    end_of_day = int(following.replace(tzinfo=zone).timestamp() * 1000)
    passed = (now - midnight) // interval + 1
    return min(midnight + passed * interval, end_of_day) if interval <= _DAY_MS else midnight + passed * interval
