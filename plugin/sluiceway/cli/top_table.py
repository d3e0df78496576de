"""Builds the table of ``sluiceway top`` from two samples. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sluiceway.api.task import TopicPartition
from sluiceway.cli.output import counts

_HEAD = ("NAME", "TYPE", "STATE", "TASKS", "OFFSETS/S", "LAG")


@dataclass(frozen=True)
class Sample:
    """The connectors at one time.

    Attributes:
        at: seconds, of any clock.
        statuses: as the REST API returns them, by connector.
        offsets: as the REST API returns them, by connector.
        lags: by sink; empty if Kafka was not asked or did not answer.
    """

    at: float
    statuses: Mapping[str, Mapping[str, Any]]
    offsets: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)
    lags: Mapping[str, int | None] = field(default_factory=dict)


def rows(now: Sample, before: Sample | None) -> list[tuple[str, ...]]:
    """Return the rows of the table, headings first. Rates need an earlier sample."""
    found: list[tuple[str, ...]] = [_HEAD]
    for name, status in sorted(now.statuses.items()):
        rate = None if before is None else _rate(name, now, before)
        lag = now.lags.get(name)
        state = status["connector"]["state"]
        shown = ("-" if rate is None else f"{rate:,.1f}", "-" if lag is None else f"{lag:,}")
        found.append((name, status["type"], state, counts(dict(status)), *shown))
    return found


def committed(offsets: list[dict[str, Any]]) -> dict[TopicPartition, int]:
    """Return a sink's committed offsets by partition; those of a source are left out."""
    return {
        TopicPartition(each["partition"]["kafka_topic"], int(each["partition"]["kafka_partition"])): int(
            each["offset"]["kafka_offset"]
        )
        for each in offsets
        if "kafka_topic" in each["partition"] and "kafka_offset" in (each["offset"] or {})
    }


def _rate(name: str, now: Sample, before: Sample) -> float | None:
    """Return the increase of offsets per second: records of a sink, and of a source its own unit, such as bytes."""
    seconds = now.at - before.at
    current, former = (_numbers(sample.offsets.get(name, [])) for sample in (now, before))
    shared = current.keys() & former.keys()
    if not shared or seconds <= 0:
        return None
    return max(0.0, sum(current[key] - former[key] for key in shared) / seconds)


def _numbers(offsets: list[dict[str, Any]]) -> dict[str, float]:
    """Return the offsets that hold exactly one number, by partition; others cannot be compared."""
    found: dict[str, float] = {}
    for each in offsets:
        numbers = [value for value in (each["offset"] or {}).values() if isinstance(value, (int, float)) and value is not True]
        if len(numbers) == 1:
            found[repr(sorted(each["partition"].items()))] = numbers[0]
    return found
