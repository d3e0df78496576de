"""A Kafka cluster's offsets in memory, for tests of what reads them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from sluiceway.api import TopicPartition
from sluiceway.errors import InternalTopicError, KafkaClientError

A0, A1, DEAD, GONE = (TopicPartition(*each) for each in (("a", 0), ("a", 1), ("dead", 0), ("gone", 0)))


class OffsetsAdmin:
    """A cluster with topic ``a`` of two partitions, and topic ``dead`` of one. Records the requests by kind."""

    def __init__(self) -> None:
        self.counts = {"a": 2, "dead": 1}
        self.begins = {A0: 5, A1: 30, DEAD: 2}
        self.ends = {A0: 100, A1: 50, DEAD: 9}
        self.times: dict[TopicPartition, int] = {}
        self.groups: dict[str, dict[TopicPartition, int]] = {}
        self.hidden: set[str] = set()
        self.clients: list[dict[str, str]] = []
        self.requests: list[str] = []

    def admin_client(self, _worker: object, own: Mapping[str, str] | None, **_: object) -> object:
        self.clients.append(dict(own or {}))
        return object()

    def read(self, group: str, partitions: Collection[TopicPartition]) -> dict[TopicPartition, tuple[int, str]]:
        """Stand for ``CommittedOffsets.read``."""
        self.requests.append("group")
        if group in self.hidden:
            raise KafkaClientError("Not authorized.", code="GROUP_AUTHORIZATION_FAILED")
        return {each: (offset, "") for each, offset in self.groups.get(group, {}).items() if each in partitions}

    def partition_counts(self, _admin: object) -> dict[str, int]:
        self.requests.append("topics")
        return dict(self.counts)

    def partition_count(self, _admin: object, topic: str) -> int | None:
        if topic in self.hidden:
            raise KafkaClientError("Not authorized.", code="TOPIC_AUTHORIZATION_FAILED")
        return self.counts.get(topic)

    def offsets_at(self, _admin: object, partitions: Collection[TopicPartition], _milliseconds: int) -> dict[TopicPartition, int]:
        return {partition: self.times.get(partition, -1) for partition in partitions}

    def offsets(self, kind: str, known: Mapping[TopicPartition, int]) -> Callable[..., dict[TopicPartition, int]]:
        """Return a function that answers with these offsets, and fails for partitions that do not exist."""

        def read(_admin: object, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
            if partitions:
                self.requests.append(kind)
            if missing := set(partitions) - known.keys():
                raise InternalTopicError(f"No such partitions: {missing}")
            return {partition: known[partition] for partition in partitions}

        return read
