"""How far a connector has come, and what it moved between two looks. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Edit = tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]

LONGEST = 1000
"""How many changed partitions are told at most: the answer goes into Airflow's database."""


@dataclass(frozen=True, slots=True)
class Position:
    """Where a connector stands.

    ``offsets`` as REST shows them. ``count`` grows with each record that is moved: a sink's committed offsets, or the ends of
    the topics that a source writes to (what others write there is counted too). ``lag`` is how many records of its topics a
    sink has not committed; None for sources, whose other end Kafka does not know.
    """

    offsets: Sequence[Edit] = ()
    count: int | None = None
    lag: int | None = None


@dataclass(frozen=True, slots=True)
class Moved:
    """What a run moved, in ``seconds``. ``changes``: partition, offset before, offset after; at most ``LONGEST`` of them."""

    records: int | None
    seconds: float
    changes: Sequence[tuple[Mapping[str, Any] | None, Mapping[str, Any] | None, Mapping[str, Any] | None]] = ()
    lag: int | None = None

    @classmethod
    def between(cls, before: Position | None, after: Position | None, seconds: float, records: int | None = None) -> Moved:
        """Return the difference; ``records`` is what the driver itself counted, where it could be asked."""
        start = {_key(partition): offset for partition, offset in before.offsets} if before else {}
        changes = [
            (partition, start.get(_key(partition)), offset)
            for partition, offset in (after.offsets if after else ())
            if before is not None and start.get(_key(partition)) != offset
        ]
        if records is None:
            records = _difference(before, after)
        return cls(records, round(seconds, 3), tuple(changes[:LONGEST]), after.lag if after else None)

    def __bool__(self) -> bool:
        """Whether anything was moved, as far as that is known."""
        return bool(self.records or self.changes)

    def __str__(self) -> str:
        count = "an unknown number of" if self.records is None else str(self.records)
        return f"{count} record(s) in {self.seconds:.1f} s, offsets of {len(self.changes)} partition(s) changed"

    def as_dict(self) -> dict[str, Any]:
        """Return it as XCom and asset events hold it."""
        found: dict[str, Any] = {
            "records": self.records,
            "seconds": self.seconds,
            "offsets": [
                {"partition": _plain(partition), "from": _plain(before), "to": _plain(after)}
                for partition, before, after in self.changes
            ],
        }
        return found if self.lag is None else {**found, "lag": self.lag}


def progress_line(before: Position, now: Position, seconds: float) -> str:
    """Return what the task's log says of the ``seconds`` between two looks."""
    moved = _difference(before, now)
    parts = ["records are not known yet"] if moved is None else [f"{moved} record(s), {moved / max(seconds, 0.001):.1f}/s"]
    if now.lag is not None:
        parts.append(f"lag {now.lag}")
    return ", ".join(parts)


def _difference(before: Position | None, after: Position | None) -> int | None:
    if before is None or after is None or before.count is None or after.count is None:
        return None
    return max(0, after.count - before.count)  # a topic may have been made anew


def _key(fields: Mapping[str, Any] | None) -> str:
    return json.dumps(fields, sort_keys=True, default=str)


def _plain(fields: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if fields is None else {name: json.loads(json.dumps(value, default=str)) for name, value in fields.items()}
