"""Reads from Kafka the offsets that the progress of connectors is computed from.

Operators, sensors, triggers, ``sluiceway top`` and the connectors' page all read through ``KafkaProbe``.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from sluiceway.api.task import TopicPartition
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import KafkaClientError
from sluiceway.herder.offset_edits import as_edits
from sluiceway.kafka.lag import Offsets, existing, partitions_of
from sluiceway.provider.progress.connector_progress import ConnectorProgress, OffsetsSnapshot, measure
from sluiceway.provider.progress.probe_request import ProbeRequest

_PARALLEL_GROUPS = 8
_MOST_ASKED = 50_000  # partitions of all groups


class KafkaProbe:
    """Reads the offsets of many connectors in few requests, over one admin client.

    Thread-safe. Calls block. They raise KafkaClientError if Kafka does not answer, and InternalTopicError if a topic disappears
    during the call.
    """

    def __init__(
        self, worker: WorkerConfig, admin_overrides: Mapping[str, str] | None = None, *, client_id: str | None = None
    ) -> None:
        from sluiceway.kafka.clients import admin_client
        from sluiceway.kafka.committed_offsets import CommittedOffsets

        self._admin = admin_client(worker, admin_overrides, client_id=client_id)
        self._offsets = CommittedOffsets(worker, admin_overrides)

    def snapshot(self, requests: Sequence[ProbeRequest], committed: Mapping[str, Offsets] | None = None) -> OffsetsSnapshot:
        """Read the offsets for all requests: one topic listing, one call each for begin and end offsets, one call per group.

        Args:
            committed: committed offsets by group, for a caller that already has them; by default they are read.
        """
        from sluiceway.kafka.admin import beginning_offsets, end_offsets, partition_counts

        at = time.time()
        refused: dict[str, KafkaClientError] = {}
        counts = partition_counts(self._admin)
        if committed is None:
            committed, refused = self._committed(requests, counts)
        dead_letters = set(partitions_of({each.dead_letter_topic for each in requests if each.dead_letter_topic}, counts))
        named = set(partitions_of({topic for each in requests for topic in each.topics}, counts))
        read = existing({partition for offsets in committed.values() for partition in offsets}, counts)
        uncommitted = {
            partition
            for each in requests
            if each.group is not None and each.group in committed
            for partition in partitions_of(each.topics, counts)
            if partition not in committed[each.group]
        }
        begins = beginning_offsets(self._admin, dead_letters | uncommitted)
        return OffsetsSnapshot(at, committed, begins, end_offsets(self._admin, dead_letters | named | read), refused)

    def progress(self, request: ProbeRequest, snapshot: OffsetsSnapshot | None = None) -> ConnectorProgress:
        """Return the progress of one connector, with 0 for what does not exist yet.

        A source's ``offsets`` are in Connect's offset topic and not included.

        Args:
            snapshot: the offsets to use; by default they are read.

        Raises:
            KafkaClientError: also if the connector's group or topics may not be described. A lag computed without them would
                report records as delivered that are not.
        """
        from sluiceway.kafka.admin import partition_count

        snapshot = snapshot or self.snapshot([request])
        if request.group is not None and request.group in snapshot.refused:
            raise snapshot.refused[request.group]
        for topic in set(request.topics) - {partition.topic for partition in snapshot.ends}:
            partition_count(self._admin, topic)  # raises for a topic that the listing omits because it may not be described
        found = measure(request, snapshot)
        if request.group is None:
            return replace(found, count=found.count or 0)
        return replace(found, offsets=as_edits(found.positions or {}), lag=found.lag or 0)

    def records_since(self, topic: str, milliseconds: int, until: int | None = None) -> int | None:
        """Return the number of records in a topic from a time on (milliseconds since the epoch); None if it does not exist.

        The number is a difference of offsets: compacted records and transaction markers are included. It ends before the first
        record of the time ``until``, if that is given.
        """
        from sluiceway.kafka.admin import end_offsets, offsets_at, partition_count

        count = partition_count(self._admin, topic)
        if count is None:
            return None
        partitions = partitions_of([topic], {topic: count})
        starts, ends = offsets_at(self._admin, partitions, milliseconds), end_offsets(self._admin, partitions)
        if until is not None:
            ends |= {each: offset for each, offset in offsets_at(self._admin, partitions, until).items() if offset >= 0}
        return sum(max(0, ends[each] - starts[each]) for each in partitions if starts[each] >= 0)

    def offsets_at(self, topics: Collection[str], milliseconds: int) -> dict[TopicPartition, int]:
        """Return the first offset from a time on (milliseconds since the epoch), by partition; the end where there is none."""
        from sluiceway.kafka.admin import end_offsets, offsets_at, partition_count

        counts = {topic: partition_count(self._admin, topic) or 0 for topic in topics}
        partitions = partitions_of(topics, counts)
        ends, starts = end_offsets(self._admin, partitions), offsets_at(self._admin, partitions, milliseconds)
        return {each: starts[each] if starts[each] >= 0 else ends[each] for each in partitions}

    def _committed(
        self, requests: Sequence[ProbeRequest], counts: Mapping[str, int]
    ) -> tuple[dict[str, Offsets], dict[str, KafkaClientError]]:
        """Return the committed offsets by group, and the error of each group that may not be described.

        A group may have committed in topics that its connector does not read any more. In a large cluster, not all are asked for.
        """
        topics: dict[str, set[str]] = {}
        for each in requests:
            if each.group is not None:
                topics.setdefault(each.group, set()).update(each.topics)
        asks_all = len(topics) * sum(counts.values()) <= _MOST_ASKED

        def read(group: str) -> Offsets | KafkaClientError:
            try:
                found = self._offsets.read(group, partitions_of(counts if asks_all else topics[group], counts))
            except KafkaClientError as error:
                if error.code != "GROUP_AUTHORIZATION_FAILED":
                    raise
                return error
            return {partition: offset for partition, (offset, _) in found.items()}

        with ThreadPoolExecutor(_PARALLEL_GROUPS, thread_name_prefix="sluiceway-groups") as pool:
            answers = dict(zip(topics, pool.map(read, topics), strict=True))
        refused = {group: answer for group, answer in answers.items() if isinstance(answer, KafkaClientError)}
        return {group: answer for group, answer in answers.items() if not isinstance(answer, KafkaClientError)}, refused
