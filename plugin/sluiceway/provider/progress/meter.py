"""Asks Kafka how far connectors have come, over few admin clients. Runs in Airflow's tasks and in the triggerer; blocks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from sluiceway.api.task import TopicPartition
from sluiceway.config.connector import TOPICS, overrides, sink_topics
from sluiceway.config.consumer_group import sink_group
from sluiceway.config.worker import WorkerConfig
from sluiceway.herder.offset_edits import as_edits
from sluiceway.kafka.lag import group_lag
from sluiceway.provider.dag_bundle.dag_keys import is_sink_config
from sluiceway.provider.progress.position import Edit, Position

if TYPE_CHECKING:
    from sluiceway.kafka.clients import AdminClient


class Admins:
    """Admin clients with a worker's rights, one for all connectors that override the same of it. Not thread-safe."""

    def __init__(self, worker: WorkerConfig) -> None:
        self._worker = worker
        self._clients: dict[frozenset[tuple[str, str]], AdminClient] = {}

    def client(self, own: Mapping[str, str]) -> AdminClient:
        """Return the one for these ``admin.override.*`` keys of a connector, without the prefix."""
        from sluiceway.kafka.clients import admin_client

        key = frozenset(own.items())
        if key not in self._clients:
            self._clients[key] = admin_client(self._worker, own)
        return self._clients[key]


class Meter:
    """One connector's; every call raises ConnectError when Kafka does not answer.

    ``config`` is the connector's, references included: its consumer group and its ``admin.override.*`` count. ``admins`` are
    those that it may share.
    """

    def __init__(self, worker: WorkerConfig, name: str, config: Mapping[str, str], admins: Admins | None = None) -> None:
        from sluiceway.config.variables import resolver

        meant = resolver(worker).resolve({key: value for key, value in config.items() if ".override." in key or key == TOPICS})
        self.is_sink = is_sink_config(config)
        self._config = meant
        self._group = sink_group(worker, name, meant)
        self._admin = (admins or Admins(worker)).client(overrides(meant, "admin"))

    def read(self, topics: Collection[str] = (), offsets: Sequence[Edit] = ()) -> Position:
        """Look once. ``topics`` are those that the connector was seen to use, ``offsets`` a source's."""
        return self._sink(topics) if self.is_sink else self._source(topics, offsets)

    def offsets_at(self, topics: Collection[str], milliseconds: int) -> dict[TopicPartition, int]:
        """Return the first offset from a time on (milliseconds since the epoch), the end where there is none, by partition."""
        from sluiceway.kafka.admin import end_offsets, offsets_at

        places = self._places(sink_topics(self._config, topics) if self.is_sink else topics)
        ends = end_offsets(self._admin, places)
        found = offsets_at(self._admin, places, milliseconds)
        return {place: found[place] if found[place] >= 0 else ends[place] for place in places}

    def _sink(self, seen: Collection[str]) -> Position:
        from sluiceway.kafka.admin import beginning_offsets, end_offsets, group_offsets

        offsets = group_offsets(self._admin, self._group)
        topics = sink_topics(self._config, seen)
        places = self._places({*topics, *(place.topic for place in offsets)})
        committed = {place: offset for place, offset in offsets.items() if place in places}  # a topic may have been deleted
        places = {place for place in places if place.topic in topics or place in committed}
        begins = beginning_offsets(self._admin, places - committed.keys())
        lag = group_lag(topics, committed, begins, end_offsets(self._admin, places))
        return Position(as_edits(offsets), sum({**begins, **committed}.values()), lag.total or 0)

    def _source(self, topics: Collection[str], offsets: Sequence[Edit]) -> Position:
        from sluiceway.kafka.admin import end_offsets

        if not topics:  # none that it was seen to write to
            return Position(offsets, 0)
        return Position(offsets, sum(end_offsets(self._admin, self._places(topics)).values()))

    def _places(self, topics: Collection[str]) -> set[TopicPartition]:
        from sluiceway.kafka.admin import partition_count

        counts = {topic: partition_count(self._admin, topic) or 0 for topic in topics}
        return {TopicPartition(topic, number) for topic, count in counts.items() for number in range(count)}
