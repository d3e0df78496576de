"""Computes the progress of connectors from Kafka's offsets. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sluiceway.errors import KafkaClientError
from sluiceway.herder.offset_edits import OffsetEdit
from sluiceway.kafka.lag import Offsets, PartitionLag, group_lag
from sluiceway.provider.progress.probe_request import ProbeRequest


@dataclass(frozen=True, slots=True)
class OffsetsSnapshot:
    """Offsets of a Kafka cluster at one moment.

    Attributes:
        at: when they were read, in seconds since the epoch.
        committed: committed offsets by consumer group, without the groups in ``refused``.
        begins: offset of the first available record, of requested partitions that exist.
        ends: offset after the last record, of requested partitions that exist.
        refused: the authorization error of each group that may not be described.
    """

    at: float
    committed: Mapping[str, Offsets] = field(default_factory=dict)
    begins: Offsets = field(default_factory=dict)
    ends: Offsets = field(default_factory=dict)
    refused: Mapping[str, KafkaClientError] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ConnectorProgress:
    """The progress of one connector. A field that Kafka's offsets do not reveal is None.

    Attributes:
        offsets: the connector's offsets as the REST API returns them.
        count: grows with each record: the sum of a sink's committed offsets, or of the end offsets of the topics that a source
            writes to (records of other producers count too).
        lag: records of its topics that a sink has not committed; None for a source.
        dead_letters: available records in the dead letter queue topic; 0 before the first one creates the topic.
        positions: ``count`` by partition.
        partitions: the lag of each partition of a sink.
    """

    offsets: Sequence[OffsetEdit] = ()
    count: int | None = None
    lag: int | None = None
    dead_letters: int | None = None
    positions: Offsets | None = None
    partitions: tuple[PartitionLag, ...] = ()


def measure(request: ProbeRequest, snapshot: OffsetsSnapshot) -> ConnectorProgress:
    """Return a connector's progress, without ``offsets``, as far as the snapshot reveals it."""
    dead_letters = _dead_letters(request.dead_letter_topic, snapshot)
    if request.group is not None:
        committed = snapshot.committed.get(request.group)
        if committed is None:
            return ConnectorProgress(dead_letters=dead_letters)
        lag = group_lag(request.topics, committed, snapshot.begins, snapshot.ends)
        # Without a commit a partition counts from its first available record, so that its first commit adds only records read.
        count = sum(each.end - each.lag if each.offset is None else each.offset for each in lag.partitions)
        return ConnectorProgress((), count, lag.total, dead_letters, committed, lag.partitions)
    if not request.topics:
        return ConnectorProgress(dead_letters=dead_letters)
    topics = set(request.topics)
    ends = {partition: end for partition, end in snapshot.ends.items() if partition.topic in topics}
    return ConnectorProgress((), sum(ends.values()), None, dead_letters, ends)


def _dead_letters(topic: str | None, snapshot: OffsetsSnapshot) -> int | None:
    if topic is None:
        return None
    ends = ((partition, end) for partition, end in snapshot.ends.items() if partition.topic == topic)
    return sum(max(0, end - snapshot.begins.get(partition, 0)) for partition, end in ends)
