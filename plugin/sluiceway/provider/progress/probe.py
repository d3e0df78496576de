"""Asks Kafka how far all connectors are, with few questions: one for all topics, one for all ends, one for each sink's group."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from sluiceway.api.task import TopicPartition
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import KafkaClientError
from sluiceway.kafka.lag import Offsets, existing, partitions_of
from sluiceway.provider.progress.measures import Reading
from sluiceway.provider.progress.subjects import Subject

log = logging.getLogger(__name__)

_AT_ONCE = 8  # groups asked at the same time


class KafkaProbe:
    """One admin client with the worker's rights. Opened at the first question; blocks. API server, one thread at a time."""

    def __init__(self, worker: WorkerConfig) -> None:
        from sluiceway.kafka.clients import admin_client

        self._admin = admin_client(worker, client_id=f"{worker.group_id}-ui")
        self._refused: set[str] = set()

    def read(self, subjects: Sequence[Subject]) -> Reading:
        """Ask about these connectors. Raises KafkaClientError, InternalTopicError (a topic went away meanwhile)."""
        from sluiceway.kafka.admin import beginning_offsets, end_offsets, partition_counts

        at = time.time()
        counts = partition_counts(self._admin)
        groups = sorted({each.group for each in subjects if each.group is not None})
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="sluiceway-ui-groups") as pool:
            asked = zip(groups, pool.map(self._committed, groups), strict=True)
            committed = {group: offsets for group, offsets in asked if offsets is not None}
        letters = set(partitions_of({each.dead_letters for each in subjects if each.dead_letters}, counts))
        named = set(partitions_of({topic for each in subjects for topic in each.topics}, counts))
        read = existing({place for offsets in committed.values() for place in offsets}, counts)
        fresh = {
            place
            for each in subjects
            if each.group in committed
            for place in partitions_of(each.topics, counts)
            if place not in committed[each.group]
        }
        begins = self._ask(beginning_offsets, letters | fresh)
        return Reading(at, committed, begins, self._ask(end_offsets, letters | named | read))

    def _ask(self, question: Callable[..., Offsets], places: set[TopicPartition]) -> Offsets:
        return question(self._admin, places) if places else {}

    def _committed(self, group: str) -> Offsets | None:
        """Return what a group has committed, None if this may not be asked; said once in the log."""
        from sluiceway.kafka.admin import group_offsets

        try:
            offsets = group_offsets(self._admin, group)
        except KafkaClientError as error:
            if error.code != "GROUP_AUTHORIZATION_FAILED":
                raise
            if group not in self._refused:
                self._refused.add(group)
                log.warning("The lag of consumer group %s is not shown: %s", group, error)
            return None
        return offsets
