"""Orders the connectors of ``sluiceway top`` and builds its table. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sluiceway.api.task import TopicPartition
from sluiceway.cli.output import counts, waits

_HEAD = ("NAME", "TYPE", "STATE", "TASKS", "OFFSETS/S", "LAG")
_WAITING = "RUNNING but waiting"
_WORST_FIRST = ("FAILED", "UNASSIGNED", _WAITING, "RESTARTING", "RUNNING", "PAUSED", "STOPPED")


@dataclass(frozen=True)
class Sample:
    """The connectors at one time.

    Attributes:
        at: seconds, of any clock.
        statuses: as the REST API returns them, by connector.
        offsets: as the REST API returns them, by connector; only of those that are shown.
        lags: by sink that is shown; empty if Kafka was not asked or did not answer.
    """

    at: float
    statuses: Mapping[str, Mapping[str, Any]]
    offsets: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)
    lags: Mapping[str, int | None] = field(default_factory=dict)


def ranked(statuses: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the names of the connectors: those with failures first, then those without a driver and those that wait
    for another system, those at rest last."""
    return sorted(statuses, key=lambda name: (_WORST_FIRST.index(_worst(statuses[name])), name))


def summary(statuses: Mapping[str, Mapping[str, Any]], shown: int) -> str:
    """Return the number of connectors by state, where FAILED includes those with a failed task."""
    found = Counter(map(_worst, statuses.values()))
    states = ", ".join(f"{found[state]} {state}" for state in _WORST_FIRST if found[state])
    rest = f"; the first {shown} are shown" if shown < len(statuses) else ""
    return f"{len(statuses)} connector(s){': ' if states else ''}{states}{rest}"


def _worst(status: Mapping[str, Any]) -> str:
    """Return FAILED or UNASSIGNED if the connector or a task is, otherwise the connector's state, or that a task waits."""
    connector: str = status["connector"]["state"]
    states = {connector, *(task["state"] for task in status["tasks"])}
    running = _WAITING if waits(status) else connector
    return next((state for state in _WORST_FIRST[:2] if state in states), running)


def rows(shown: Sequence[str], samples: Sequence[Sample]) -> list[tuple[str, ...]]:
    """Return the rows of the table, headings first, for the last sample. A rate needs an earlier one with the connector.

    The last column, what tasks wait for, is there only if some do.
    """
    now = samples[-1]
    found: list[tuple[str, ...]] = [_HEAD]
    for name in shown:
        status = now.statuses[name]
        before = next(sample for sample in samples if name in sample.offsets or sample is now)
        rate, lag = _rate(name, now, before), now.lags.get(name)
        state = status["connector"]["state"]
        numbers = ("-" if rate is None else f"{rate:,.1f}", "-" if lag is None else f"{lag:,}")
        found.append((name, status["type"], state, counts(status), *numbers))
    reasons = ["; ".join(dict.fromkeys(waits(now.statuses[name]))) for name in shown]
    return [(*row, reason) for row, reason in zip(found, ["STATUS", *reasons], strict=True)] if any(reasons) else found


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
