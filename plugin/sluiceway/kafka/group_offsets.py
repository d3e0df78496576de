"""Shows and changes the committed offsets of consumer groups, for the offsets of sink connectors. Blocks until answered."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from sluiceway.api.task import TopicPartition as Place
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConflictError, KafkaClientError
from sluiceway.kafka.admin import group_offsets, partition_count
from sluiceway.kafka.clients import admin_client
from sluiceway.kafka.errors import mapped_errors, to_connect_error

log = logging.getLogger(__name__)

_REQUEST_SECONDS = 30.0
_BUSY = {"UNKNOWN_MEMBER_ID", "NON_EMPTY_GROUP", "REBALANCE_IN_PROGRESS", "GROUP_SUBSCRIBED_TO_TOPIC"}
_NO_GROUP = "GROUP_ID_NOT_FOUND"


class GroupBusyError(ConflictError):
    """A consumer group still has members, so its offsets may not be changed."""


class ConsumerGroups:
    """The groups of one cluster, asked with a connector's own rights. API server; every call raises KafkaClientError.

    ``overrides`` are the connector's ``admin.override.*`` settings, without the prefix.
    """

    def __init__(self, worker: WorkerConfig, overrides: Mapping[str, str] | None = None) -> None:
        self._admin = admin_client(worker, overrides)

    def offsets(self, group: str) -> dict[Place, int]:
        """Return what a group has committed; empty if there is no such group."""
        return group_offsets(self._admin, group)

    def missing(self, places: Collection[Place]) -> list[Place]:
        """Return those of the partitions that do not exist."""
        counts = {topic: partition_count(self._admin, topic) or 0 for topic in {place.topic for place in places}}
        return [place for place in places if not 0 <= place.partition < counts[place.topic]]

    def alter(self, group: str, offsets: Mapping[Place, int | None]) -> None:
        """Set committed offsets, None to forget one. Raises GroupBusyError while the group has members.

        The client library cannot forget a single offset: the group is deleted, and what it is to keep is committed anew.
        """
        wanted = {place: offset for place, offset in offsets.items() if offset is not None}
        before = self.offsets(group)
        if any(offset is None and place in before for place, offset in offsets.items()):
            wanted = {place: offset for place, offset in before.items() if place not in offsets} | wanted
            log.info("Deleting consumer group %s; it will be made again with %s", group, wanted)
            self.delete(group)
        if wanted:
            self._commit(group, wanted)

    def delete(self, group: str) -> None:
        """Delete a group with all its offsets, if there is one. Raises GroupBusyError while it has members."""
        futures = self._admin.delete_consumer_groups([group], request_timeout=_REQUEST_SECONDS)
        try:
            with mapped_errors(f"delete consumer group '{group}'"):
                futures[group].result()
        except KafkaClientError as error:
            if error.code in _BUSY:
                raise GroupBusyError(str(error)) from error
            if error.code != _NO_GROUP:
                raise

    def _commit(self, group: str, offsets: Mapping[Place, int]) -> None:
        request = ConsumerGroupTopicPartitions(group, [TopicPartition(*place, offset) for place, offset in offsets.items()])
        doing = f"set offsets of consumer group '{group}'"
        futures = self._admin.alter_consumer_group_offsets([request], request_timeout=_REQUEST_SECONDS)
        try:
            with mapped_errors(doing):
                answered = futures[group].result().topic_partitions or []
            for each in answered:
                if each.error is not None:
                    raise to_connect_error(each.error, f"{doing} for {each.topic}-{each.partition}")
        except KafkaClientError as error:
            if error.code in _BUSY:
                raise GroupBusyError(str(error)) from error
            raise
