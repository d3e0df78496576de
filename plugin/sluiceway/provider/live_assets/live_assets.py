"""Makes asset events for connectors that run all the time: of what they have moved, and of each partition that is complete.

Runs in the API server, in a thread of each process. Only the process that leads the pause sync acts. Partitions that have had
their event are known from Airflow's database, in which the events of one partition are one transaction: whatever dies, each
partition has its event once.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from sluiceway.api.task import TopicPartition
from sluiceway.config.live_assets import PARTITION, LiveAssetSettings, Partitions, partition_key
from sluiceway.config.schedules import LONG_RUNNING, MODE
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError
from sluiceway.kafka.lag import Offsets
from sluiceway.provider.dag_bundle.dag_keys import is_sink_config
from sluiceway.provider.leader_loop import LeaderLoop
from sluiceway.provider.lineage.assets import asset_uris, connector_uri, written_uris
from sluiceway.provider.live_assets.completeness import (
    Past,
    log_has_passed,
    records_between,
    sink_has_passed,
    source_has_passed,
)
from sluiceway.provider.progress.connector_progress import ConnectorProgress
from sluiceway.provider.progress.probe_request import probe_request
from sluiceway.storage.interfaces import ConfigBackingStore
from sluiceway.storage.model import ConnectorEntry, TargetState

log = logging.getLogger(__name__)

COMPLETE_UNTIL = "complete_until"
"""The field of an event's extra with the end of the last complete partition, in milliseconds since the epoch."""

_MOST_AT_ONCE = 50  # partitions of a connector in one step
_MOST_POSITIONS = 1000  # Airflow stores them in its database


class Database(Protocol):
    """The part of Airflow's database that holds asset events (``AirflowDatabase``)."""

    def complete_until(self, uri: str) -> int | None: ...

    def add_asset_events(self, uris: Collection[str], extra: Mapping[str, Any], partition: str | None = None) -> bool: ...


class Cluster(Protocol):
    """Kafka's side: offsets, topics, and states of connectors (``KafkaCluster``)."""

    def progress(self) -> Mapping[str, ConnectorProgress]:
        """Return the latest progress of all connectors, which may be a minute old."""

    def committed(self, group: str, topics: Collection[str]) -> Offsets:
        """Return the committed offsets of a sink's group in its topics."""

    def past(self, topics: Collection[str], moment: int) -> Past:
        """Return what says in the partitions of topics what came before a moment. Raises ConnectError for hidden topics."""

    def sink_topics(self, name: str, config: Mapping[str, str]) -> Collection[str]:
        """Return the topics that a sink reads, also those that it has not read yet."""

    def topics(self, name: str) -> Collection[str]:
        """Return the active topics of a connector (KIP-558)."""

    def has_records(self, partition: TopicPartition, offset: int) -> bool:
        """Return whether a partition has records from an offset on."""

    def is_running(self, name: str) -> bool:
        """Return whether all tasks of a connector run."""

    def log_times(self, name: str) -> list[int] | None:
        """Return the commit times of the stored offsets of a connector that reads a database log; None for any other one."""


@dataclass
class _Seen:
    """A connector's past since this process leads."""

    count: int | None = None
    """The records that it had moved when it had its last event."""
    at: float = float("-inf")
    until: int | None = None
    """The end of the last partition that had an event."""
    is_asked: bool = False
    committed: Offsets | None = None
    problem: str | None = None


class LiveAssets:
    """Makes the events, every few seconds.

    Args:
        leads: tells whether this process may act.
        clock: the time in seconds since the epoch.
    """

    def __init__(
        self,
        worker: WorkerConfig,
        config: ConfigBackingStore,
        cluster: Cluster,
        database: Database,
        leads: Callable[[], bool],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._worker = worker
        self._config = config
        self._cluster = cluster
        self._database = database
        self._leads = leads
        self._clock = clock
        self._seen: dict[str, _Seen] = {}
        self.loop = LeaderLoop("live-assets", self.step, "Asset events of connectors cannot be made")

    def step(self) -> None:
        """Make the events that are due. A connector that cannot be asked is tried again, and said once."""
        if not self._leads():
            self._seen.clear()  # another process makes events now
            return
        entries = [each for each in self._config.snapshot().connectors.values() if _is_live(each)]
        self._seen = {each.name: self._seen.get(each.name) or _Seen() for each in entries}
        progress = self._cluster.progress()
        for entry in entries:
            if self.loop.stopping.is_set() or not self._leads():
                return
            seen = self._seen[entry.name]
            try:
                self._look_at(entry.name, entry.config or {}, seen, progress.get(entry.name))
                seen.problem = None
            except Exception as error:  # whatever it is, the others have their events, and it is tried again
                if seen.problem != str(error):
                    seen.problem = str(error)
                    unexpected = not isinstance(error, ConnectError)
                    log.warning("[%s|worker] No asset events: %s", entry.name, error, exc_info=unexpected)

    def _look_at(self, name: str, config: Mapping[str, str], seen: _Seen, progress: ConnectorProgress | None) -> None:
        count = None if progress is None else progress.count
        if PARTITION not in config and count in (None, seen.count):
            return  # as of most connectors most of the time
        settings = LiveAssetSettings.of(config)
        if settings.partitions is not None:
            self._announce_partitions(name, config, seen, settings, settings.partitions)
        if progress is None or count is None:
            return
        if seen.count is None:
            seen.count = count  # what was moved before has had its event, or nobody to wait for it
        elif count != seen.count and self._clock() - seen.at >= settings.interval / 1000:
            known = {} if seen.until is None else {COMPLETE_UNTIL: seen.until}
            moved = {"records": max(0, count - seen.count), "positions": _positions(progress.positions or {})}
            self._database.add_asset_events(self._uris(name, config), {"connector": name, **moved, **known})
            seen.count, seen.at = count, self._clock()

    def _announce_partitions(
        self, name: str, config: Mapping[str, str], seen: _Seen, settings: LiveAssetSettings, partitions: Partitions
    ) -> None:
        if not seen.is_asked:
            [uri] = asset_uris([connector_uri(name)])
            seen.until, seen.is_asked = self._database.complete_until(uri), True
        if seen.until is None:
            # Without a date to begin with, the first partition is the one that has ended last.
            now = int(self._clock() * 1000)
            begin = partitions.at_or_before(now) - 1 if settings.begin is None else settings.begin
            seen.until = partitions.at_or_before(begin)
        for _ in range(_MOST_AT_ONCE):
            start, end = partitions.at_or_before(seen.until), partitions.after(seen.until)
            if self._clock() * 1000 < end + settings.lateness:
                return
            topics = self._passed(name, config, seen, end + settings.lateness)
            if topics is None or self.loop.stopping.is_set():
                return
            records = None
            if topics:
                records = records_between(self._cluster.past(topics, start), self._cluster.past(topics, end))
            key = partition_key(start)
            extra = {"connector": name, "records": records, "partition_key": key, "start": start, "end": end, COMPLETE_UNTIL: end}
            if self._database.add_asset_events(self._uris(name, config), extra, key):
                log.info("[%s|worker] Partition %s is complete: %s records", name, key, records)
            seen.until = end

    def _passed(self, name: str, config: Mapping[str, str], seen: _Seen, moment: int) -> Collection[str] | None:
        """Return the topics of a connector that has passed a moment that is over; None if it has not.

        Those of a database log, whose records have another time in Kafka, are left out.
        """
        request = probe_request(name, config, self._worker, self._cluster.topics(name))
        if is_sink_config(config):
            if request.group is None:
                raise ConnectError(f"{PARTITION} does not go with another cluster, or a consumer group that is a reference.")
            topics = self._cluster.sink_topics(name, config)
            committed, before = self._cluster.committed(request.group, topics), seen.committed
            seen.committed = committed
            # A sink that still commits is not asked what it has left, since that reads from its topics.
            has_records = self._cluster.has_records if committed == before else _yes
            return topics if sink_has_passed(self._cluster.past(topics, moment), committed, has_records) else None
        if (times := self._cluster.log_times(name)) is not None:
            return () if log_has_passed(times, moment) else None
        past = self._cluster.past(request.topics, moment)
        return request.topics if source_has_passed(past, is_running=self._cluster.is_running(name)) else None

    def _uris(self, name: str, config: Mapping[str, str]) -> list[str]:
        sink = is_sink_config(config)
        topics = [] if sink else self._cluster.topics(name)
        return asset_uris(written_uris(name, config, sink=sink, bootstrap_servers=self._worker.bootstrap_servers, topics=topics))


def _is_live(entry: ConnectorEntry) -> bool:
    config = entry.config or {}
    return bool(config) and config.get(MODE, LONG_RUNNING) == LONG_RUNNING and entry.target_state is not TargetState.STOPPED


def _yes(_partition: TopicPartition, _offset: int) -> bool:
    return True


def _positions(offsets: Offsets) -> dict[str, dict[str, int]]:
    """Return offsets by topic and partition, as JSON has them."""
    found: dict[str, dict[str, int]] = {}
    for partition, offset in sorted(offsets.items())[:_MOST_POSITIONS]:
        found.setdefault(partition.topic, {})[str(partition.partition)] = offset
    return found
