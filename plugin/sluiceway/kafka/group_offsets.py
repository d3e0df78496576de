"""Reads and changes the committed offsets of consumer groups, which are the offsets of sink connectors."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping

from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka import TopicPartition as TopicPartitionOffset

from sluiceway.api.task import TopicPartition
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConflictError, KafkaClientError
from sluiceway.kafka.admin import (
    await_coordinator,
    beginning_offsets,
    end_offsets,
    offsets_at,
    partition_count,
    partition_counts,
)
from sluiceway.kafka.answers import answer
from sluiceway.kafka.clients import admin_client
from sluiceway.kafka.committed_offsets import CommittedOffsets
from sluiceway.kafka.errors import to_connect_error
from sluiceway.kafka.lag import PartitionBounds, partitions_of

log = logging.getLogger(__name__)

_REQUEST_SECONDS = 30.0
_BUSY = {"UNKNOWN_MEMBER_ID", "NON_EMPTY_GROUP", "REBALANCE_IN_PROGRESS", "GROUP_SUBSCRIBED_TO_TOPIC"}
_NO_GROUP = "GROUP_ID_NOT_FOUND"


class GroupBusyError(ConflictError):
    """A consumer group has members, so its offsets cannot be changed."""


class ConsumerGroups:
    """The consumer groups of one cluster, accessed with a connector's own admin client settings.

    ``overrides`` are the connector's ``admin.override.*`` settings without the prefix. Every method blocks until the cluster
    answers and raises KafkaClientError if it does not. Runs in the API server.
    """

    def __init__(self, worker: WorkerConfig, overrides: Mapping[str, str] | None = None) -> None:
        self._admin = admin_client(worker, overrides)
        self._committed = CommittedOffsets(worker, overrides)

    def offsets(self, group: str) -> dict[TopicPartition, int]:
        """Return a group's committed offsets, empty if there is no such group."""
        return {partition: offset for partition, (offset, _) in self.committed(group).items()}

    def committed(self, group: str) -> dict[TopicPartition, tuple[int, str]]:
        """Return a group's committed offsets with their metadata."""
        counts = self.counts()
        return self._committed.read(group, partitions_of(counts, counts))

    def missing(self, partitions: Collection[TopicPartition]) -> list[TopicPartition]:
        """Return the partitions that do not exist."""
        counts = {topic: partition_count(self._admin, topic) or 0 for topic in {each.topic for each in partitions}}
        return [each for each in partitions if not 0 <= each.partition < counts[each.topic]]

    def counts(self) -> dict[str, int]:
        """Return the number of partitions of each topic in the cluster."""
        return partition_counts(self._admin)

    def bounds(self, partitions: Collection[TopicPartition], milliseconds: int | None) -> dict[TopicPartition, PartitionBounds]:
        """Return where partitions begin and end, and their offsets at a time (milliseconds since the epoch) if one is given."""
        begins = beginning_offsets(self._admin, partitions)
        ends = end_offsets(self._admin, partitions, read_committed=False)
        times = {} if milliseconds is None else offsets_at(self._admin, partitions, milliseconds)
        return {each: PartitionBounds(begins[each], ends[each], times.get(each, -1)) for each in partitions}

    def alter(self, group: str, offsets: Mapping[TopicPartition, int | None]) -> None:
        """Set committed offsets; None removes one. Raises GroupBusyError while the group has members.

        The client library cannot remove a single offset, so the group is deleted and the remaining offsets are committed
        again.
        """
        remaining = {partition: offset for partition, offset in offsets.items() if offset is not None}
        before = self.offsets(group)
        if any(offset is None and partition in before for partition, offset in offsets.items()):
            remaining = {partition: offset for partition, offset in before.items() if partition not in offsets} | remaining
            log.info("Deleting consumer group %s to remove offsets; it is created again with %s", group, remaining)
            self.delete(group)
        if remaining:
            self._commit(group, remaining)

    def delete(self, group: str) -> None:
        """Delete a group with all its offsets, if it exists. Raises GroupBusyError while it has members."""
        doing = f"delete consumer group '{group}'"
        await_coordinator(self._admin, group, doing)
        try:
            answer(self._admin.delete_consumer_groups([group], request_timeout=_REQUEST_SECONDS)[group], doing)
        except KafkaClientError as error:
            if error.code in _BUSY:
                raise GroupBusyError(str(error)) from error
            if error.code != _NO_GROUP:
                raise

    def _commit(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        positions = [TopicPartitionOffset(*partition, offset) for partition, offset in offsets.items()]
        request = ConsumerGroupTopicPartitions(group, positions)
        doing = f"set offsets of consumer group '{group}'"
        futures = self._admin.alter_consumer_group_offsets([request], request_timeout=_REQUEST_SECONDS)
        try:
            for each in answer(futures[group], doing).topic_partitions or []:
                if each.error is not None:
                    raise to_connect_error(each.error, f"{doing} for {each.topic}-{each.partition}")
        except KafkaClientError as error:
            if error.code in _BUSY:
                raise GroupBusyError(str(error)) from error
            raise
