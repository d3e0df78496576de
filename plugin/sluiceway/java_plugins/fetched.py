"""Describes messages that a Java sink task has read from Kafka itself. No I/O. ``PartitionReader.java`` is the other side."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sluiceway.api import TopicPartition
from sluiceway.kafka.clients import ConsumedMessage


class FetchedRun(NamedTuple):
    """Successive messages of one topic partition: how many, and the first and last offset."""

    topic_partition: TopicPartition
    size: int
    first: int
    last: int


@dataclass(frozen=True)
class FetchedMessages(Sequence[ConsumedMessage]):
    """Messages that are in the Java process only, in their order.

    ``times`` are the timestamps of the first and the last one in milliseconds, as far as they have one. The task must not be
    given those of the partitions ``left_out``, which ``runs`` does not have.
    """

    runs: Sequence[FetchedRun]
    times: tuple[int | None, int | None] = (None, None)
    left_out: frozenset[TopicPartition] = frozenset()

    @classmethod
    def of(cls, described: Mapping[str, Any]) -> FetchedMessages:
        """Decode what ``PartitionReader.java`` tells."""
        runs = [FetchedRun(TopicPartition(topic, number), *rest) for topic, number, *rest in described["runs"]]
        return cls(runs, tuple(described["times"]) or (None, None))

    def __len__(self) -> int:
        return sum(run.size for run in self.runs)

    def __getitem__(self, index: Any) -> Any:
        raise TypeError("The messages are in Java.")

    @property
    def starts(self) -> dict[TopicPartition, int]:
        """The first offset of each partition."""
        return {run.topic_partition: run.first for run in reversed(self.runs)}

    def without(self, partitions: Collection[TopicPartition]) -> FetchedMessages:
        """Leave out the messages of these partitions."""
        left_out = self.left_out.union(partitions)
        return FetchedMessages([run for run in self.runs if run.topic_partition not in left_out], self.times, left_out)

    def ends(self, taken: int, failed: int | None) -> dict[TopicPartition, int]:
        """Return the next offset to read of each partition if the first ``taken`` messages are taken.

        ``failed`` is the offset of the message after those, None if all are taken.
        """
        ends: dict[TopicPartition, int] = {}
        for run in self.runs:
            if taken >= run.size:
                ends[run.topic_partition] = run.last + 1
            elif taken >= 0 and failed is not None:
                ends[run.topic_partition] = failed
            else:
                ends.setdefault(run.topic_partition, run.first)
            taken = taken - run.size if taken >= run.size else -1
        return ends


class FetchedPut(NamedTuple):
    """A batch that was put: its messages, the number of records that transforms made of them, and the seconds it took."""

    messages: FetchedMessages
    records: int
    seconds: float

    @classmethod
    def of(cls, described: Mapping[str, Any]) -> FetchedPut:
        """Decode what ``SinkObject.java`` tells."""
        return cls(FetchedMessages.of(described["messages"]), described["records"], described["seconds"])
