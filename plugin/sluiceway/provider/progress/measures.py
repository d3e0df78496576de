"""What Kafka's offsets say of a connector: how far it is, what is left, how many dead letters there are. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sluiceway.kafka.lag import Offsets, PartitionLag, group_lag
from sluiceway.provider.progress.subjects import Subject


@dataclass(frozen=True, slots=True)
class Reading:
    """What the cluster said; ``at`` in seconds since the epoch.

    ``committed`` is by consumer group, without the groups that could not be asked. ``begins`` and ``ends`` hold the
    partitions that were asked for and exist.
    """

    at: float
    committed: Mapping[str, Offsets] = field(default_factory=dict)
    begins: Offsets = field(default_factory=dict)
    ends: Offsets = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Measure:
    """How far a connector is. None is what nobody can tell from outside.

    ``positions`` grow by one with each record: a sink's committed offsets, the ends of the topics that a source writes to.
    """

    positions: Offsets | None = None
    lag: int | None = None
    dead_letters: int | None = None
    partitions: tuple[PartitionLag, ...] = ()


def measure(subject: Subject, reading: Reading) -> Measure:
    """Return how far a connector is, as far as the reading goes."""
    letters = _count(subject.dead_letters, reading)
    if subject.group is not None:
        committed = reading.committed.get(subject.group)
        if committed is None:
            return Measure(dead_letters=letters)
        lag = group_lag(subject.topics, committed, reading.begins, reading.ends)
        return Measure(committed, lag.total, letters, lag.partitions)
    if not subject.topics:
        return Measure(dead_letters=letters)
    topics = set(subject.topics)
    return Measure({place: end for place, end in reading.ends.items() if place.topic in topics}, None, letters)


def _count(topic: str | None, reading: Reading) -> int | None:
    """Return how many dead letters there are; none before the first one, which makes the topic."""
    if topic is None:
        return None
    return sum(max(0, end - reading.begins.get(place, 0)) for place, end in reading.ends.items() if place.topic == topic)
