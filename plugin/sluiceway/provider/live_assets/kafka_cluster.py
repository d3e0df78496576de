"""Reads from Kafka what asset events of connectors need. Runs in the API server."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Mapping
from typing import cast

from sluiceway.api import SourceConnector
from sluiceway.api.task import TopicPartition
from sluiceway.config.connector import CONNECTOR_CLASS, CONNECTOR_VERSION
from sluiceway.config.worker import WorkerConfig
from sluiceway.discovery import connector_class
from sluiceway.herder import Herder
from sluiceway.herder.intervals import reads_log
from sluiceway.kafka.admin import beginning_offsets, end_offsets, offsets_at, partition_count, partition_counts
from sluiceway.kafka.clients import TopicPartitionOffset, admin_client, consumer, internal_consumer_config
from sluiceway.kafka.committed_offsets import CommittedOffsets
from sluiceway.kafka.errors import mapped_errors
from sluiceway.kafka.lag import Offsets, partitions_of
from sluiceway.provider.driver.interval_runs import topics_read
from sluiceway.provider.live_assets.completeness import PartitionPast, Past
from sluiceway.provider.progress.cluster_view import ConnectorStates
from sluiceway.provider.progress.connector_progress import ConnectorProgress
from sluiceway.storage.model import State

_READ_SECONDS = 10.0


class KafkaCluster:
    """Implements ``live_assets.Cluster``. Each method raises KafkaClientError if Kafka does not answer.

    ``progress`` returns the latest progress of all connectors without waiting.
    """

    def __init__(self, worker: WorkerConfig, herder: Herder, progress: Callable[[], Mapping[str, ConnectorProgress]]) -> None:
        self._worker = worker
        self._herder = herder
        self._client_id = f"{worker.group_id}-live-assets"
        self._admin = admin_client(worker, client_id=self._client_id)
        self._offsets = CommittedOffsets(worker)
        self.progress = progress

    def committed(self, group: str, topics: Collection[str]) -> Offsets:
        """Return the committed offsets of a sink's group in its topics."""
        found = self._offsets.read(group, partitions_of(topics, partition_counts(self._admin)))
        return {partition: offset for partition, (offset, _) in found.items()}

    def past(self, topics: Collection[str], moment: int) -> Past:
        """Return what says in the partitions of topics what came before a moment. Raises ConnectError for hidden topics."""
        counts = {topic: partition_count(self._admin, topic) or 0 for topic in topics}
        partitions, now = partitions_of(topics, counts), time.time() * 1000
        begins = beginning_offsets(self._admin, partitions)
        times = offsets_at(self._admin, partitions, moment, latest=now, read_committed=True)
        stable, ends = (end_offsets(self._admin, partitions, read_committed=committed) for committed in (True, False))
        return {each: PartitionPast(begins[each], ends[each], stable[each], times[each]) for each in partitions}

    def sink_topics(self, name: str, config: Mapping[str, str]) -> Collection[str]:
        """Return the topics that a sink reads, also those that it has not read yet."""
        return topics_read(config, self._herder.topics(name), partition_counts(self._admin))

    def topics(self, name: str) -> Collection[str]:
        """Return the active topics of a connector."""
        return self._herder.topics(name)

    def has_records(self, partition: TopicPartition, offset: int) -> bool:
        """Return whether a partition has records from an offset on, by reading it; also True if it does not tell in time."""
        deadline = time.monotonic() + _READ_SECONDS
        config = internal_consumer_config(self._worker, self._client_id, **{"enable.partition.eof": "true"})
        with contextlib.closing(consumer(config)) as reader, mapped_errors(f"read topic {partition.topic}"):
            reader.assign([TopicPartitionOffset(*partition, offset)])
            while time.monotonic() < deadline:
                message = reader.poll(1.0)
                if message is None:
                    continue
                error = message.error()
                if error is None or error.name() == "_PARTITION_EOF":
                    return error is None
        return True

    def is_running(self, name: str) -> bool:
        """Return whether all tasks of a connector run."""
        status = self._herder.status(name)
        tasks = {number: each.state for number, each in status.tasks.items()}
        return ConnectorStates(status.connector.state, tasks).is_in({State.RUNNING}, tasks=True)

    def log_times(self, name: str) -> list[int] | None:
        """Return the commit times of the stored offsets of a connector that reads a database log; None for any other one."""
        config = self._herder.info(name).config
        if not reads_log(config):
            return None
        found = cast("type[SourceConnector]", connector_class(config[CONNECTOR_CLASS], config.get(CONNECTOR_VERSION)))
        return [found.position_time(offset) or 0 for _, offset in self._herder.offsets(name) if offset is not None]
