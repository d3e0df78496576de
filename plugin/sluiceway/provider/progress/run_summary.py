"""Computes what a run has moved from the progress before and after it. No I/O."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sluiceway.provider.progress.connector_progress import ConnectorProgress

MAX_CHANGES = 1000
"""The most partitions whose offsets a summary lists: Airflow stores it in its database."""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The records and offsets that a run has moved.

    Attributes:
        records: number of records; None if unknown.
        seconds: duration of the run.
        changes: partition, offset before and offset after of each changed partition, at most ``MAX_CHANGES``.
        lag: a sink's lag after the run.
        interval: the interval that an exact run has moved, in the form of XCom.
    """

    records: int | None
    seconds: float
    changes: Sequence[tuple[Mapping[str, Any] | None, Mapping[str, Any] | None, Mapping[str, Any] | None]] = ()
    lag: int | None = None
    interval: Mapping[str, Any] | None = None

    @classmethod
    def between(
        cls, before: ConnectorProgress | None, after: ConnectorProgress | None, seconds: float, records: int | None = None
    ) -> RunSummary:
        """Return the summary of a run.

        Args:
            before, after: progress at its start and end; None if unknown.
            records: the driver's own count, which wins over the difference of offsets.
        """
        start = {_key(partition): offset for partition, offset in before.offsets} if before else {}
        changes = [
            (partition, start.get(_key(partition)), offset)
            for partition, offset in (after.offsets if after else ())
            if before is not None and start.get(_key(partition)) != offset
        ]
        if records is None:
            records = _difference(before, after)
        return cls(records, round(seconds, 3), tuple(changes[:MAX_CHANGES]), after.lag if after else None)

    def __bool__(self) -> bool:
        """Return whether the run is known to have moved anything."""
        return bool(self.records or self.changes)

    def __str__(self) -> str:
        count = "an unknown number of" if self.records is None else str(self.records)
        return f"{count} record(s) in {self.seconds:.1f} s, offsets of {len(self.changes)} partition(s) changed"

    def as_dict(self) -> dict[str, Any]:
        """Return the summary in the form of XCom and asset events."""
        found: dict[str, Any] = {
            "records": self.records,
            "seconds": self.seconds,
            "offsets": [
                {"partition": _as_json(partition), "from": _as_json(before), "to": _as_json(after)}
                for partition, before, after in self.changes
            ],
        }
        if self.lag is not None:
            found["lag"] = self.lag
        return found if self.interval is None else {**found, "interval": dict(self.interval)}


def progress_line(before: ConnectorProgress, now: ConnectorProgress, seconds: float) -> str:
    """Return the log line for the ``seconds`` between two measurements."""
    moved = _difference(before, now)
    parts = ["number of records not known yet"] if moved is None else [f"{moved} record(s), {moved / max(seconds, 0.001):.1f}/s"]
    if now.lag is not None:
        parts.append(f"lag {now.lag}")
    return ", ".join(parts)


def _difference(before: ConnectorProgress | None, after: ConnectorProgress | None) -> int | None:
    if before is None or after is None or before.count is None or after.count is None:
        return None
    return max(0, after.count - before.count)  # negative if a topic was deleted and created again


def _key(fields: Mapping[str, Any] | None) -> str:
    return json.dumps(fields, sort_keys=True, default=str)


def _as_json(fields: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if fields is None else {name: json.loads(json.dumps(value, default=str)) for name, value in fields.items()}
