"""Reads the state of a Connect cluster for sensors, triggers and operators.

Runs in the triggerer, where all waits on one cluster share a ``ClusterView``, and in Airflow tasks. Every call blocks, and
raises ConnectError if Kafka does not answer.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from sluiceway.config.connector import overrides
from sluiceway.config.properties import read_properties
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import InternalTopicError, KafkaClientError, NotFoundError
from sluiceway.herder import Herder
from sluiceway.herder.plugin_path import use_plugin_path
from sluiceway.herder.states import Clock, driver_is_alive
from sluiceway.provider.progress.connector_progress import ConnectorProgress, OffsetsSnapshot
from sluiceway.provider.progress.probe import KafkaProbe
from sluiceway.provider.progress.probe_request import ProbeRequest, probe_request, resolve_client_keys
from sluiceway.storage.factory import Stores, open_stores
from sluiceway.storage.interfaces import StatusBackingStore
from sluiceway.storage.interval_ledger import read_ledger
from sluiceway.storage.intervals import Ledger
from sluiceway.storage.model import ConnectorEntry, LeaseOwner, State
from sluiceway.worker.batch_messages import BatchMessages, BatchReport

log = logging.getLogger(__name__)

_FRESH_SECONDS = 2.0  # how long a measurement serves other callers
_WATCHED_SECONDS = 10.0  # how long after a call a connector is measured along with others


@dataclass(frozen=True, slots=True)
class ConnectorStates:
    """The state of a connector, and of its tasks by number."""

    connector: State
    tasks: Mapping[int, State]

    def __str__(self) -> str:
        tasks = ", ".join(f"task {number} {state.value}" for number, state in sorted(self.tasks.items()))
        return f"connector {self.connector.value}, {tasks or 'no tasks'}"

    def states(self) -> set[State]:
        """Return every state that occurs."""
        return {self.connector, *self.tasks.values()}

    def is_in(self, wanted: Collection[State], *, tasks: bool) -> bool:
        """Return whether the connector is in one of these states, and with ``tasks`` every task too.

        RUNNING without any task does not count: the connector is still starting its tasks.
        """
        if self.connector not in wanted:
            return False
        if not tasks:
            return True
        if self.connector is State.RUNNING and not self.tasks:
            return False
        return all(state in wanted for state in self.tasks.values())


@dataclass(frozen=True, slots=True)
class DriverSeen:
    """A connector's driver according to the status topic.

    Attributes:
        lives: whether its heartbeats are recent.
        generation: the generation of its latest status.
        clean: whether no status that it left is FAILED, RUNNING or RESTARTING.
        at: the time of its last status, in seconds since the epoch.
        owner: the Airflow task that started it; None if it is not known.
        worker_id: the worker id in its latest status.
    """

    lives: bool
    generation: int = 0
    clean: bool = True
    at: float = 0.0
    owner: LeaseOwner | None = None
    worker_id: str = ""


def driver_seen(worker: WorkerConfig, store: StatusBackingStore, name: str) -> DriverSeen:
    """Return a connector's driver according to a status topic that has been read."""
    recorded = store.connector(name)
    if recorded is None:
        return DriverSeen(False)
    states = {recorded.state, *(status.state for status in store.tasks(name).values())}
    lives = driver_is_alive(recorded, Clock(int(time.time() * 1000), worker.number("sluiceway.heartbeat.timeout.ms")))
    clean = not states & {State.FAILED, State.RUNNING, State.RESTARTING}
    return DriverSeen(lives, recorded.generation, clean, recorded.timestamp / 1000, store.owner(name), recorded.worker_id)


@dataclass
class _Watched:
    """A connector that is measured repeatedly, with its latest measurement."""

    name: str
    config: Mapping[str, str]
    resolved: Mapping[str, str]
    probe: KafkaProbe
    request: ProbeRequest
    called_at: float = 0.0
    snapshot: OffsetsSnapshot | None = None
    measured_at: float = float("-inf")
    progress: ConnectorProgress | None = None


class ClusterView:
    """Reads a cluster's internal topics and offsets over one set of connections, for any number of callers. Thread-safe.

    Connectors that were recently asked about are measured together, one batch at a time, so that many waits cost few requests.
    """

    def __init__(self, worker: WorkerConfig, stores: Stores) -> None:
        self._worker = worker
        self._stores = stores
        self._herder = Herder(worker, stores.config, stores.status, stores.offsets)
        self._batches = BatchMessages(stores.status)
        self._lock = threading.Lock()
        self._probes: dict[frozenset[tuple[str, str]], KafkaProbe] = {}
        self._watched: dict[str, _Watched] = {}

    @property
    def worker(self) -> WorkerConfig:
        """The cluster's worker config, by whose config providers references are resolved."""
        return self._worker

    def entry(self, name: str) -> ConnectorEntry | None:
        """Return a connector's entry in the config topic; None if it does not exist."""
        return self._stores.config.snapshot().entry(name)

    def states(self, name: str) -> ConnectorStates:
        """Return the states of a connector and its tasks; raises NotFoundError."""
        status = self._herder.status(name)
        return ConnectorStates(status.connector.state, {number: task.state for number, task in status.tasks.items()})

    def driver(self, name: str) -> DriverSeen:
        """Return a connector's driver according to the status topic."""
        return driver_seen(self._worker, self._stores.status, name)

    def batch(self, name: str) -> tuple[str | None, BatchReport | None]:
        """Return the id of the last micro-batch that was requested from a shared application, and the last report."""
        return self._batches.request(name), self._batches.report(name)

    def progress(self, name: str) -> ConnectorProgress:
        """Return a connector's progress, at most 2 seconds old; raises NotFoundError."""
        with self._lock:
            watched = self._watch(name)
            if time.monotonic() - watched.measured_at >= _FRESH_SECONDS:
                self._measure(watched)
            if watched.progress is None:
                found = watched.probe.progress(watched.request, watched.snapshot)
                sink = watched.request.group is not None
                watched.progress = found if sink else replace(found, offsets=self._herder.offsets(name))
            return watched.progress

    def records_since(self, topic: str, milliseconds: int, until: int | None = None) -> int | None:
        """Return the number of records in a topic, as ``KafkaProbe.records_since`` does."""
        with self._lock:
            probe = self._probe({})
        return probe.records_since(topic, milliseconds, until)

    def intervals(self, name: str) -> Ledger:
        """Return the intervals that runs of a connector have moved."""
        return read_ledger(self._stores.offsets, name)

    def _watch(self, name: str) -> _Watched:
        entry = self.entry(name)
        if entry is None:
            self._watched.pop(name, None)
            raise NotFoundError(f"Connector {name} not found")
        config = entry.config or {}
        watched = self._watched.get(name)
        if watched is None or watched.config != config:
            resolved = resolve_client_keys(self._worker, config)
            probe = self._probe(overrides(resolved, "admin"))
            watched = self._watched[name] = _Watched(name, config, resolved, probe, ProbeRequest(name))
        watched.called_at = time.monotonic()
        return watched

    def _measure(self, watched: _Watched) -> None:
        """Measure a connector, and with it every recently watched one that shares its probe."""
        oldest = watched.called_at - _WATCHED_SECONDS
        self._watched = {name: each for name, each in self._watched.items() if each.called_at >= oldest}
        batch = [each for each in self._watched.values() if each.probe is watched.probe]
        try:
            self._read(batch)
        except (KafkaClientError, InternalTopicError):
            if len(batch) == 1:
                raise
            self._read([watched])  # the failure may concern a topic of another connector

    def _read(self, batch: list[_Watched]) -> None:
        for each in batch:
            topics = self._herder.topics(each.name)
            each.request = probe_request(each.name, each.resolved, self._worker, topics, own_admin=True)
        snapshot = batch[0].probe.snapshot([each.request for each in batch])
        for each in batch:
            each.snapshot, each.measured_at, each.progress = snapshot, time.monotonic(), None

    def _probe(self, admin_overrides: Mapping[str, str]) -> KafkaProbe:
        """Return the probe for a connector's ``admin.override.*`` properties; connectors with the same ones share it."""
        key = frozenset(admin_overrides.items())
        if key not in self._probes:
            self._probes[key] = KafkaProbe(self._worker, admin_overrides)
        return self._probes[key]


@contextmanager
def open_view(worker: WorkerConfig) -> Iterator[ClusterView]:
    """Open a view that nobody shares, for a single measurement."""
    use_plugin_path(worker.raw)
    with open_stores(worker, brief=True) as stores:
        yield ClusterView(worker, stores)


class ClusterKey(NamedTuple):
    """Identifies a Connect cluster: the path of the worker's file, and the Airflow connection that overrides the file."""

    worker_file: str
    kafka_conn_id: str | None = None


@dataclass
class _Shared:
    users: int = 0
    opened: tuple[ClusterView, Stores] | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


class SharedViews:
    """Views shared by several users: opened for the first, closed after the last. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shared: dict[ClusterKey, _Shared] = {}

    def acquire(self, cluster: ClusterKey) -> None:
        """Register a user of a cluster's view."""
        with self._lock:
            self._shared.setdefault(cluster, _Shared()).users += 1

    def view(self, cluster: ClusterKey, connection_properties: Callable[[str | None], Mapping[str, str]]) -> ClusterView:
        """Return the view of a cluster, opening it on the first call. Call between ``acquire`` and ``release``.

        Args:
            connection_properties: returns the worker properties that an Airflow connection sets.

        Raises:
            ConnectError: the view cannot be opened; the call may be repeated.
        """
        with self._lock:
            shared = self._shared[cluster]
        with shared.lock:
            if shared.opened is None:
                path = Path(cluster.worker_file)
                worker = WorkerConfig.of({**read_properties(path), **connection_properties(cluster.kafka_conn_id)})
                use_plugin_path(worker.raw)
                stores = open_stores(worker)
                stores.start()
                shared.opened = ClusterView(worker, stores), stores
                log.info("Opened the connections to Connect cluster %s", worker.group_id)
            return shared.opened[0]

    def release(self, cluster: ClusterKey) -> None:
        """Unregister a user; closes the view after the last one."""
        with self._lock:
            shared = self._shared[cluster]
            shared.users -= 1
            if shared.users:
                return
            del self._shared[cluster]
        with shared.lock:
            if shared.opened is not None:
                shared.opened[1].stop()
