"""Splits the values of a column into ranges, and keeps positions in offsets. No I/O.

Positions are integers: values of the column, or microseconds since the epoch of a timestamp column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from sluiceway.api import Offset, Partition
from sluiceway.errors import ConnectError

INCREMENTING_FIELD, TIMESTAMP_FIELD, NANOS_FIELD = "incrementing", "timestamp", "timestamp_nanos"  # as the JDBC source has them
ROUND_FIELD, SPLIT_FIELD = "round", "split"

SPLITS_PER_SLOT = 16
"""Splits that a slot produces in one round: more of them make the waits between rounds rarer, and offsets appear later."""


class ValueRange(NamedTuple):
    """Rows whose column has a value above ``low`` and not above ``high``; of a timestamp, microseconds since the epoch."""

    column: str
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Window:
    """Rows that are not read yet: ``count`` rows with values from ``low`` to ``high`` (inclusive)."""

    low: int
    high: int
    count: int

    def bounds(self, slots: int, rows: int) -> list[int]:
        """Return the ends of the next round's ranges of about ``rows`` rows; each excludes its start.

        There are at most ``SPLITS_PER_SLOT`` ranges for each slot, and the same number for all slots if there are more ranges
        than slots. The first number is where the first range starts. Values are taken as evenly spread.
        """
        width = self.high - self.low + 1
        share = min(1.0, slots * SPLITS_PER_SLOT * rows / max(1, self.count))
        last = self.low - 1 + max(1, int(width * share)) if share < 1 else self.high
        size = last - self.low + 1
        wanted = -(-min(self.count, slots * SPLITS_PER_SLOT * rows) // rows)
        even = wanted if wanted <= slots else -(-wanted // slots) * slots
        parts = max(1, min(even, size))
        return [self.low - 1, *(self.low - 1 + size * part // parts for part in range(1, parts + 1))]

    def after(self, position: int, rows: int) -> Window | None:
        """Return what remains once ``rows`` rows up to ``position`` were read."""
        return Window(position + 1, self.high, max(1, self.count - rows)) if position < self.high else None


@dataclass(frozen=True, slots=True)
class RoundPlan:
    """A round's plan as it is stored in the offset: its id, its slots and its bounds, as ``Window.bounds`` returns them.

    The number of slots is stored because a split must keep its slot when the round is repeated with another config.
    """

    id: str
    slots: int
    bounds: tuple[int, ...]

    @property
    def ranges(self) -> list[tuple[int, int]]:
        """The ranges as pairs of an exclusive start and an inclusive end."""
        return list(zip(self.bounds, self.bounds[1:], strict=False))

    def text(self) -> str:
        """Return the plan as an offset's field, which must be primitive: ``id:2:0,5,10``."""
        return f"{self.id}:{self.slots}:{','.join(map(str, self.bounds))}"


def plan_in(offset: Offset | None) -> RoundPlan | None:
    """Return the plan of a round that has begun, if the offset has one. Raises ConnectError for an invalid one."""
    text = (offset or {}).get(ROUND_FIELD)
    if text is None:
        return None
    try:
        number, slots, bounds = str(text).split(":")
        plan = RoundPlan(number, int(slots), tuple(map(int, bounds.split(","))))
    except ValueError:
        plan = None
    if plan is None or not plan.ranges or plan.slots < 1:
        raise ConnectError(f"The offset's {ROUND_FIELD} is not a round's plan: {text}. Set the offset without it.")
    return plan


def position_in(offset: Offset | None, *, timestamp: bool) -> int | None:
    """Return the position that an offset holds, None before the first row. Raises ConnectError for an invalid offset."""
    offset = offset or {}
    parts: list[int | None] = [
        offset.get(name) for name in ((TIMESTAMP_FIELD, NANOS_FIELD) if timestamp else (INCREMENTING_FIELD,))
    ]
    for part in parts:
        if part is not None and (not isinstance(part, int) or isinstance(part, bool)):
            raise ConnectError(f"{part!r} is no position; an offset's fields are integers.")
    first = parts[0]
    if first is None or not timestamp:
        return first
    nanos = parts[1]
    return first // 1000 * 1_000_000 + (first % 1000 * 1000 if nanos is None else nanos // 1000)


def offset_of(position: int | None, *, timestamp: bool) -> dict[str, Any]:
    """Return the offset of a position, in the form of the JDBC source."""
    if position is None:
        return {}
    if not timestamp:
        return {INCREMENTING_FIELD: position}
    return {TIMESTAMP_FIELD: position // 1000, NANOS_FIELD: position % 1_000_000 * 1000}


def split_partition(partition: Partition, split: int) -> dict[str, Any]:
    """Return the source partition in which a split of a round is marked as produced."""
    return {**partition, SPLIT_FIELD: split}
