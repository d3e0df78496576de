"""Finds the offsets for a target such as a time, in the partitions that the user has chosen. No I/O."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sluiceway.api import OffsetTarget, OffsetTargetKind, TopicPartition
from sluiceway.config.connector import TOPICS_REGEX
from sluiceway.config.parsing import parse_list
from sluiceway.data.instant import EPOCH
from sluiceway.errors import BadRequestError, NotFoundError
from sluiceway.java.regex import compile_java
from sluiceway.kafka.lag import PartitionBounds

_KINDS = {"earliest": OffsetTargetKind.EARLIEST, "latest": OffsetTargetKind.LATEST}
_ZULU = re.compile("[zZ]$")  # Python 3.10 does not parse it
_MILLISECOND = dt.timedelta(milliseconds=1)


class FoundOffset(NamedTuple):
    """A partition with its stored offset and that of the target. None if there is none, or if it will be removed."""

    partition: Mapping[str, Any]
    before: Mapping[str, Any] | None
    offset: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class PartitionChoice:
    """The partitions of a connector that the user has chosen; all, if none is named.

    ``partitions`` are numbers for a sink. For a source they are fields, which a partition must have among its own.
    """

    topics: Collection[str] = ()
    partitions: Sequence[int | Mapping[str, Any]] = ()

    @classmethod
    def parse(cls, topics: Sequence[str], partitions: Sequence[str]) -> PartitionChoice:
        """Parse the parameters of a request. Raises BadRequestError."""
        return cls(tuple(topics), tuple(map(_partition, partitions)))


def parse_target(to: str | None, shift_by: str | None) -> OffsetTarget:
    """Parse "earliest", "latest" or a time, or a number to shift by. A time without a zone is UTC. Raises BadRequestError."""
    if (to is None) == (shift_by is None):
        raise BadRequestError("Name one target: 'to' (earliest, latest, or a time) or 'shiftBy' (a number of records).")
    if shift_by is not None:
        try:
            return OffsetTarget(OffsetTargetKind.SHIFT, int(shift_by))
        except ValueError:
            raise BadRequestError(f"Cannot shift by {shift_by!r}: it is not a whole number.") from None
    kind = _KINDS.get(str(to).lower())
    if kind is not None:
        return OffsetTarget(kind)
    try:
        moment = dt.datetime.fromisoformat(_ZULU.sub("+00:00", str(to)))
    except ValueError:
        raise BadRequestError(f"{to!r} is neither earliest, latest, nor a time such as 2026-11-23T09:00:00.000+01:00.") from None
    zoned = moment if moment.tzinfo is not None else moment.replace(tzinfo=dt.timezone.utc)
    return OffsetTarget(OffsetTargetKind.TIMESTAMP, (zoned - EPOCH) // _MILLISECOND)


def chosen_partitions(
    name: str, config: Mapping[str, str], choice: PartitionChoice, counts: Mapping[str, int]
) -> list[TopicPartition]:
    """Return the chosen partitions of a sink, given the number of partitions of each topic.

    Raises BadRequestError for a topic that the sink does not read and for a partition that is not a number, and NotFoundError
    for topics and partitions that do not exist.
    """
    topics = choice.topics or _topics(config, counts)
    read = set(_topics(config, [*counts, *topics]))
    for topic in topics:
        if topic not in read:
            raise BadRequestError(f"Connector {name} does not read topic {topic}.")
    numbers = [each for each in choice.partitions if isinstance(each, int)]
    if len(numbers) < len(choice.partitions):
        raise BadRequestError("A partition of a sink is a number.")
    missing = [topic for topic in topics if topic not in counts]
    missing += [f"{topic}:{number}" for topic in topics for number in numbers if number >= counts.get(topic, number + 1)]
    if missing or not topics:
        raise NotFoundError(f"Connector {name} reads topics or partitions that do not exist: {', '.join(missing) or 'no topic'}.")
    return [TopicPartition(topic, number) for topic in sorted(topics) for number in numbers or range(counts[topic])]


def sink_offset(
    name: str, partition: TopicPartition, target: OffsetTarget, committed: int | None, bounds: PartitionBounds
) -> int:
    """Return a partition's offset for a target, as kafka-consumer-groups.sh does. Raises BadRequestError without one to shift."""
    if target.kind is OffsetTargetKind.EARLIEST:
        return bounds.begin
    if target.kind is OffsetTargetKind.LATEST:
        return bounds.end
    if target.kind is OffsetTargetKind.TIMESTAMP:
        return bounds.at if bounds.at >= 0 else bounds.end
    if committed is None:
        raise BadRequestError(
            f"Connector {name} has no offset to shift in partition {partition.topic}:{partition.partition}. Choose other "
            "partitions, or the beginning, the end, or a time."
        )
    return min(max(committed + target.number, bounds.begin), bounds.end)


def chosen_sources(
    found: Sequence[tuple[Mapping[str, Any], Mapping[str, Any] | None]], choice: PartitionChoice
) -> list[tuple[Mapping[str, Any], Mapping[str, Any] | None]]:
    """Return the offsets of the chosen partitions of a source. Raises BadRequestError, and NotFoundError if none is left."""
    if choice.topics:
        raise BadRequestError("Topics are for sinks. Choose partitions of a source by their fields, as 'offsets get' shows them.")
    fields = [each for each in choice.partitions if not isinstance(each, int)]
    if len(fields) < len(choice.partitions):
        raise BadRequestError('A partition of a source is a JSON object, such as {"filename": "/data/orders.txt"}.')
    chosen = [each for each in found if not fields or any(wanted.items() <= each[0].items() for wanted in fields)]
    if not chosen:
        raise NotFoundError("No partition of the source has an offset there, or none of those that were chosen.")
    return chosen


def _topics(config: Mapping[str, str], existing: Collection[str]) -> list[str]:
    pattern = config.get(TOPICS_REGEX)
    if not pattern:
        return parse_list(config.get("topics"))
    compiled = compile_java(pattern)
    return [topic for topic in dict.fromkeys(existing) if compiled.matches(topic)]


def _partition(text: str) -> int | Mapping[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if isinstance(found, dict) or (type(found) is int and found >= 0):
        return found
    raise BadRequestError(f"{text!r} is neither the number of a partition nor a JSON object with its fields.")
