"""Cuts a table's first reading into ranges of keys, for several tasks to read at once. Pure.

The plan is made by the connector and written into every offset, of what comes after the snapshot, too: whichever task comes
later goes by the plan that was begun, not by a new one. What comes after the snapshot is read in the usual way by one task,
from the plan's start on.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
from dataclasses import dataclass

from sluiceway.connectors.jdbc.source.offsets import Position
from sluiceway.connectors.jdbc.source.shape import Snapshot
from sluiceway.connectors.jdbc.source.sql import Bounds, KeyRange
from sluiceway.errors import ConnectError


@dataclass(frozen=True, slots=True)
class Plan:
    """Where ranges of ``column`` end, but for the last one; ``highest`` is the last one's end, ``until`` the moment up to which
    rows belong to the snapshot, None where no time counts.
    """

    column: str
    ends: tuple[int, ...]
    highest: int | None
    until: dt.datetime | None = None

    @property
    def count(self) -> int:
        """How many ranges it has."""
        return len(self.ends) + 1

    @property
    def text(self) -> str:
        until = None if self.until is None else self.until.isoformat()
        return json.dumps([self.column, list(self.ends), self.highest, until], separators=(",", ":"))

    @classmethod
    def parse(cls, text: str) -> Plan:
        """Return the plan of a text; raises ConnectError for what is none."""
        try:
            column, ends, highest, until = json.loads(text)
            return cls(column, tuple(map(int, ends)), highest, None if until is None else dt.datetime.fromisoformat(until))
        except (ValueError, TypeError) as error:
            raise ConnectError(f"The stored plan of a snapshot cannot be read: {text}. Reset the connector's offsets.") from error

    def snapshot(self, number: int) -> Snapshot:
        """Return one of the ranges, from 0."""
        lows, highs = [None, *self.ends], [*self.ends, self.highest]
        return Snapshot(KeyRange(self.column, lows[number], highs[number]), Bounds(None, self.until), self.text)

    def open_ended(self, yes: bool = True) -> Plan:
        """Return this plan with a last range that ends nowhere."""
        return dataclasses.replace(self, highest=None) if yes else self

    @property
    def follows(self) -> Position:
        """Where reading goes on after the snapshot: rows of the very moment ``until`` are not in it."""
        return Position(timestamp=self.until - dt.timedelta(microseconds=1)) if self.until is not None else Position(self.highest)


def plan_of(column: str, low: int | None, high: int | None, count: int, until: dt.datetime | None) -> Plan:
    """Return a plan of so many ranges of equal width; an empty table has one of nothing."""
    if low is None or high is None:
        low = high = 0
    width = (high - low + 1) / count
    return Plan(column, tuple(low + int(width * number) - 1 for number in range(1, count)), high, until)
