"""What ``sluiceway top`` shows: connectors with their states, lags and rates, from one look to the next. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sluiceway.api.task import TopicPartition
from sluiceway.cli.output import counts
from sluiceway.kafka.lag import Lag, Offsets, group_lag

_HEAD = ("NAME", "TYPE", "STATE", "TASKS", "OFFSETS/S", "LAG")


@dataclass(frozen=True)
class Look:
    """What was seen at a time (seconds, any clock).

    ``statuses`` and ``offsets`` as REST shows them, and ``topics`` that sinks read, all by connector. ``begins`` and ``ends`` of
    the sinks' partitions; empty if Kafka was not asked or did not answer.
    """

    at: float
    statuses: Mapping[str, Mapping[str, Any]]
    offsets: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)
    topics: Mapping[str, Sequence[str]] = field(default_factory=dict)
    begins: Offsets = field(default_factory=dict)
    ends: Offsets = field(default_factory=dict)


def rows(now: Look, before: Look | None) -> list[tuple[str, ...]]:
    """Return the table; a rate needs an earlier look, a lag the ends of the partitions."""
    found: list[tuple[str, ...]] = [_HEAD]
    for name, status in sorted(now.statuses.items()):
        rate = None if before is None else _rate(name, now, before)
        lag = _lag(name, now).total
        state = status["connector"]["state"]
        shown = ("-" if rate is None else f"{rate:,.1f}", "-" if lag is None else f"{lag:,}")
        found.append((name, status["type"], state, counts(dict(status)), *shown))
    return found


def committed(offsets: list[dict[str, Any]]) -> dict[TopicPartition, int]:
    """Return a sink's committed offsets."""
    return {
        TopicPartition(each["partition"]["kafka_topic"], int(each["partition"]["kafka_partition"])): int(
            each["offset"]["kafka_offset"]
        )
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


def _lag(name: str, look: Look) -> Lag:
    return group_lag(look.topics.get(name, ()), committed(look.offsets.get(name, [])), look.begins, look.ends)
