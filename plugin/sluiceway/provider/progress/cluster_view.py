"""A look at a Connect cluster over one set of connections, however many ask: for sensors, triggers and operators.

Lives in the triggerer or in a task's process; every call blocks, and raises ConnectError when Kafka does not answer.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from sluiceway.api.task import TopicPartition
from sluiceway.config.properties import read_properties
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import NotFoundError
from sluiceway.herder import Herder
from sluiceway.herder.plugin_path import use_plugin_path
from sluiceway.provider.progress.meter import Admins, Meter
from sluiceway.provider.progress.observation import Observation
from sluiceway.provider.progress.position import Position
from sluiceway.storage.factory import Stores, open_stores
from sluiceway.storage.model import ConnectorEntry, State

log = logging.getLogger(__name__)

_BELIEVED = 2.0  # seconds for which an answer that Kafka was asked for is given to others too


@dataclass(frozen=True, slots=True)
class DriverSeen:
    """Whether a driver lives, as far as its heartbeats tell, its generation, and whether what it left is in order."""

    lives: bool
    generation: int = 0
    clean: bool = True


class ClusterView:
    """Reads the internal topics once and goes on from there. Thread-safe."""

    def __init__(self, worker: WorkerConfig, stores: Stores) -> None:
        self._worker = worker
        self._stores = stores
        self._herder = Herder(worker, stores.config, stores.status, stores.offsets)
        self._lock = threading.Lock()
        self._admins = Admins(worker)
        self._meters: dict[str, tuple[Mapping[str, str], Meter]] = {}
        self._positions: dict[str, tuple[float, Position]] = {}

    def entry(self, name: str) -> ConnectorEntry | None:
        """Return a connector that exists, or None."""
        return self._stores.config.snapshot().entry(name)

    def observe(self, name: str) -> Observation:
        """Return a connector's states; raises NotFoundError."""
        status = self._herder.status(name)
        return Observation(status.connector.state, {number: task.state for number, task in status.tasks.items()})

    def driver(self, name: str) -> DriverSeen:
        """Return what the status topic tells of a connector's driver."""
        recorded = self._stores.status.connector(name)
        if recorded is None:
            return DriverSeen(False)
        states = {recorded.state, *(status.state for status in self._stores.status.tasks(name).values())}
        lives = self._herder.driver_is_alive(name)
        return DriverSeen(lives, recorded.generation, clean=not states & {State.FAILED, State.RUNNING, State.RESTARTING})

    def position(self, name: str) -> Position:
        """Return where a connector stands; raises NotFoundError. An answer is good for all who ask within 2 s."""
        with self._lock:
            seen = self._positions.get(name)
            if seen is not None and time.monotonic() - seen[0] < _BELIEVED:
                return seen[1]
            meter = self._meter(name)
            offsets = () if meter.is_sink else self._herder.offsets(name)
            position = meter.read(self._herder.topics(name), offsets)
            self._positions[name] = time.monotonic(), position
            return position

    def records_since(self, topic: str, milliseconds: int) -> int | None:
        """Return how many records a topic holds from a time on (milliseconds since the epoch); None if there is no such topic.

        Counted by offsets, so that what was compacted away, and the ends of transactions, count too.
        """
        from sluiceway.kafka.admin import end_offsets, offsets_at, partition_count

        with self._lock:
            admin = self._admins.client({})
        count = partition_count(admin, topic)
        if count is None:
            return None
        places = [TopicPartition(topic, number) for number in range(count)]
        starts, ends = offsets_at(admin, places, milliseconds), end_offsets(admin, places)
        return sum(max(0, ends[place] - starts[place]) for place in places if starts[place] >= 0)

    def _meter(self, name: str) -> Meter:
        entry = self.entry(name)
        if entry is None:
            self._meters.pop(name, None)
            raise NotFoundError(f"Connector {name} not found")
        config = entry.config or {}
        known = self._meters.get(name)
        if known is None or known[0] != config:
            known = self._meters[name] = config, Meter(self._worker, name, config, self._admins)
        return known[1]


@contextmanager
def open_view(worker: WorkerConfig) -> Iterator[ClusterView]:
    """Open a view of one's own, for a single look."""
    use_plugin_path(worker.raw)
    with open_stores(worker) as stores:
        yield ClusterView(worker, stores)


class Cluster(NamedTuple):
    """Which cluster: a worker's file, and an Airflow connection that wins over it."""

    worker_file: str
    kafka_conn_id: str | None = None


@dataclass
class _Shared:
    users: int = 0
    view: ClusterView | None = None
    stores: Stores | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


class SharedViews:
    """Views that several users hold at once: opened by the first, closed by the last. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shared: dict[Cluster, _Shared] = {}

    def take(self, cluster: Cluster) -> None:
        """Say that the view of a cluster is needed."""
        with self._lock:
            self._shared.setdefault(cluster, _Shared()).users += 1

    def view(self, cluster: Cluster, overrides: Callable[[str | None], Mapping[str, str]]) -> ClusterView:
        """Return the view, opening it if nobody has yet; raises ConnectError, and may be called again then.

        ``overrides`` looks up the worker properties that the connection sets.
        """
        with self._lock:
            shared = self._shared[cluster]
        with shared.lock:
            if shared.view is None:
                path = Path(cluster.worker_file)
                worker = WorkerConfig.of({**read_properties(path), **overrides(cluster.kafka_conn_id)})
                use_plugin_path(worker.raw)
                stores = open_stores(worker)
                stores.start()
                shared.stores, shared.view = stores, ClusterView(worker, stores)
                log.info("Watching the connectors of %s", worker.group_id)
            return shared.view

    def give_back(self, cluster: Cluster) -> None:
        """Say that it is needed no more; the last one closes it."""
        with self._lock:
            shared = self._shared[cluster]
            shared.users -= 1
            if shared.users:
                return
            del self._shared[cluster]
        with shared.lock:
            if shared.stores is not None:
                shared.stores.stop()
