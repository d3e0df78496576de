"""What Kafka's offsets say of a connector: how far it is, what is left, how many dead letters there are. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sluiceway.api.task import TopicPartition
from sluiceway.provider.ui.subjects import Subject

Offsets = Mapping[TopicPartition, int]


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
class SinkPartition:
    """A partition that a sink reads; ``offset`` None: it has committed none, so all of the partition is before it."""

    place: TopicPartition
    offset: int | None
    end: int
    lag: int


@dataclass(frozen=True, slots=True)
class Measure:
    """How far a connector is. None is what nobody can tell from outside.

    ``positions`` grow by one with each record: a sink's committed offsets, the ends of the topics that a source writes to.
    """

    positions: Offsets | None = None
    lag: int | None = None
    dead_letters: int | None = None
    partitions: tuple[SinkPartition, ...] = ()


def places_of(topics: Iterable[str], partitions: Mapping[str, int]) -> list[TopicPartition]:
    """Return the partitions of those topics that exist."""
    return [TopicPartition(topic, number) for topic in topics for number in range(partitions.get(topic, 0))]


def measure(subject: Subject, reading: Reading) -> Measure:
    """Return how far a connector is, as far as the reading goes."""
    letters = _count(subject.dead_letters, reading)
    if subject.group is not None:
        committed = reading.committed.get(subject.group)
        return Measure(dead_letters=letters) if committed is None else _sink(subject, committed, reading, letters)
    if not subject.topics:
        return Measure(dead_letters=letters)
    topics = set(subject.topics)
    return Measure({place: end for place, end in reading.ends.items() if place.topic in topics}, None, letters)


def _sink(subject: Subject, committed: Offsets, reading: Reading, letters: int | None) -> Measure:
    places = {place for place in reading.ends if place.topic in subject.topics} | (committed.keys() & reading.ends.keys())
    partitions = tuple(_partition(place, committed.get(place), reading) for place in sorted(places))
    lag = sum(each.lag for each in partitions) if partitions else None
    return Measure(committed, lag, letters, partitions)


def _partition(place: TopicPartition, offset: int | None, reading: Reading) -> SinkPartition:
    end = reading.ends[place]
    start = reading.begins.get(place, 0) if offset is None else offset
    return SinkPartition(place, offset, end, max(0, end - start))


def _count(topic: str | None, reading: Reading) -> int | None:
    """Return how many dead letters there are; none before the first one, which makes the topic."""
    if topic is None:
        return None
    return sum(max(0, end - reading.begins.get(place, 0)) for place, end in reading.ends.items() if place.topic == topic)
