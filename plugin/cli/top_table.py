"""What ``sluiceway top`` shows: connectors with their states, lags and rates, from one look to the next. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sluiceway.cli.output import counts

Places = dict[tuple[str, int], int]

_HEAD = ("NAME", "TYPE", "STATE", "TASKS", "OFFSETS/S", "LAG")


@dataclass(frozen=True)
class Look:
    """What was seen at a time (seconds, any clock): statuses, offsets by connector, and the ends of the sinks' partitions."""

    at: float
    statuses: Mapping[str, Mapping[str, Any]]
    offsets: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)
    ends: Places = field(default_factory=dict)


def rows(now: Look, before: Look | None) -> list[tuple[str, ...]]:
    """Return the table; a rate needs an earlier look, a lag the ends of the partitions."""
    found: list[tuple[str, ...]] = [_HEAD]
    for name, status in sorted(now.statuses.items()):
        rate = None if before is None else _rate(name, now, before)
        lag = _lag(now.offsets.get(name, []), now.ends)
        state = status["connector"]["state"]
        shown = ("-" if rate is None else f"{rate:,.1f}", "-" if lag is None else f"{lag:,}")
        found.append((name, status["type"], state, counts(dict(status)), *shown))
    return found


def kafka_places(offsets: list[dict[str, Any]]) -> Places:
    """Return a sink's committed offsets by topic and partition."""
    return {
        (each["partition"]["kafka_topic"], int(each["partition"]["kafka_partition"])): int(each["offset"]["kafka_offset"])
        for each in offsets
        if "kafka_topic" in each["partition"] and "kafka_offset" in (each["offset"] or {})
    }


def _rate(name: str, now: Look, before: Look) -> float | None:
    """Return by how much offsets grow in a second: records of a sink; of a source, whatever it counts, such as bytes."""
    seconds = now.at - before.at
    current, former = (_numbers(look.offsets.get(name, [])) for look in (now, before))
    shared = current.keys() & former.keys()
    if not shared or seconds <= 0:
        return None
    return max(0.0, sum(current[key] - former[key] for key in shared) / seconds)


def _numbers(offsets: list[dict[str, Any]]) -> dict[str, float]:
    """Return the offsets of one number each by partition; of others nothing can be told."""
    found: dict[str, float] = {}
    for each in offsets:
        numbers = [value for value in (each["offset"] or {}).values() if isinstance(value, (int, float)) and value is not True]
        if len(numbers) == 1:
            found[repr(sorted(each["partition"].items()))] = numbers[0]
    return found


def _lag(offsets: list[dict[str, Any]], ends: Places) -> int | None:
    places = {place: offset for place, offset in kafka_places(offsets).items() if place in ends}
    return sum(max(0, ends[place] - offset) for place, offset in places.items()) if places else None
