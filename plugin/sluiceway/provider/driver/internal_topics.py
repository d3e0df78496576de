"""Reads and writes Kafka Connect's internal topics for an Airflow task.

Each call opens the topics and closes them again: a task may last for weeks and needs them only when its driver starts and ends.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Protocol

from sluiceway.config.connector import NAME, overrides
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import NotFoundError
from sluiceway.herder import Herder
from sluiceway.herder.plugin_path import use_plugin_path
from sluiceway.provider.driver.interval_connector import Outcome, WantedInterval
from sluiceway.provider.driver.interval_runs import IntervalRuns
from sluiceway.provider.driver.warm_batch import BatchSeen, KafkaWarmBatch, RequestedBatch, WarmBatch, cancel
from sluiceway.provider.progress.cluster_view import DriverSeen, driver_seen, open_view
from sluiceway.provider.progress.connector_progress import ConnectorProgress
from sluiceway.provider.progress.probe import KafkaProbe
from sluiceway.provider.progress.probe_request import probe_request, resolve_client_keys
from sluiceway.storage.config_backing_store import KafkaConfigBackingStore
from sluiceway.storage.factory import Stores, open_stores
from sluiceway.storage.history import Origin
from sluiceway.storage.interfaces import ConfigBackingStore, StatusBackingStore
from sluiceway.storage.intervals import IntervalEntry
from sluiceway.storage.model import ConnectorEntry, State, Status, TargetState, TaskId
from sluiceway.storage.status_backing_store import KafkaStatusBackingStore
from sluiceway.worker.end_requests import request_end

log = logging.getLogger(__name__)

_TOPICS_SECONDS = 300.0
_INTERRUPTED_SECONDS = 1.0
_REQUESTS = ("connector", "target-state", "restart")
_ALIVE = (State.RUNNING, State.RESTARTING)


class Intervals(Protocol):
    """The intervals of a cluster's connectors: see ``IntervalRuns``."""

    def begin(self, wanted: WantedInterval) -> Outcome: ...

    def moves(self, name: str, run_id: str) -> bool: ...

    def leave(self, name: str) -> None: ...

    def end(self, name: str, records: int | None) -> IntervalEntry: ...

    def fail(self, name: str, error: str) -> None: ...


class InternalTopics(Protocol):
    """The operators' access to a Connect cluster. Every method raises ConnectError if Kafka does not answer."""

    def entry(self, name: str) -> ConnectorEntry | None:
        """Return a connector's config and target state; None if it does not exist."""

    def watched_entry(self, name: str) -> AbstractContextManager[Callable[[], ConnectorEntry | None]]:
        """Return a function that reads ``entry`` repeatedly over one connection."""

    def ensure_config(self, name: str, config: Mapping[str, str]) -> None:
        """Create the connector or change its config, if it differs; raises InvalidConfigError if the config is invalid."""

    def ensure_paused(self, name: str, still_wanted: Callable[[], bool]) -> bool:
        """Set the target state PAUSED if it is STARTED; return whether it was set.

        ``still_wanted`` is called last, once Kafka has answered: the user may resume the DAG while the task waits for Kafka.
        """

    def mark_unassigned(self, name: str, trace: str | None = None) -> None:
        """Write UNASSIGNED for a connector and its tasks whose status is RUNNING or RESTARTING.

        If the target state is PAUSED or STOPPED, write that status instead, since no driver is left to write it. Otherwise
        ``trace`` is the connector's trace, also if it is UNASSIGNED already.
        """

    def mark_hosted_unassigned(self, application: str, trace: str) -> None:
        """Do the same for each connector of a shared application whose target state is STARTED."""

    def spark_settings(self, application: str) -> dict[str, str]:
        """Return the ``spark.*`` keys of all connectors of a shared application; where two differ, the first by name wins."""

    def await_change(self, name: str, seconds: float, interrupted: Callable[[], bool]) -> None:
        """Wait until the connector is changed, deleted, paused, or asked to restart; at most ``seconds``.

        Ends within a second if ``interrupted`` returns True.
        """

    def progress(self, name: str) -> ConnectorProgress | None:
        """Return a connector's progress with its offsets; None if it does not exist."""

    def progress_reader(self, name: str) -> Callable[[], ConnectorProgress]:
        """Return a function that measures a connector repeatedly over one connection, without a source's offsets.

        Raises NotFoundError.
        """

    def failed(self, name: str, since: float) -> tuple[str, ...]:
        """Return what of a connector is FAILED, the connector itself or tasks, each with the first line of its trace.

        A status from before ``since``, in seconds since the epoch, is that of an earlier driver and does not count.
        """

    def topics(self, name: str) -> list[str]:
        """Return the connector's active topics, as ``GET /connectors/<name>/topics`` does."""

    def driver(self, name: str) -> DriverSeen:
        """Return the state of a connector's driver according to the status topic."""

    def end_driver(self, name: str) -> bool:
        """Make a connector's driver drain and end if it lives; return whether it lives."""

    def intervals(self) -> Intervals:
        """Return the intervals of the cluster's connectors."""

    def warm_batch(self, batch: RequestedBatch) -> AbstractContextManager[WarmBatch]:
        """Return the connections with which a micro-batch is requested from a shared application."""

    def batch_seen(self, batch: RequestedBatch) -> BatchSeen:
        """Return what the application has reported about a micro-batch."""

    def cancel_batch(self, batch: RequestedBatch) -> None:
        """Make the application drain a micro-batch, or not start it."""


class KafkaInternalTopics:
    """``InternalTopics`` on a real Kafka cluster."""

    def __init__(self, worker: WorkerConfig) -> None:
        use_plugin_path(worker.raw)
        self._worker = worker

    def entry(self, name: str) -> ConnectorEntry | None:
        with self._config_store() as store:
            return store.snapshot().entry(name)

    @contextmanager
    def watched_entry(self, name: str) -> Iterator[Callable[[], ConnectorEntry | None]]:
        with self._config_store(brief=False) as store:
            yield lambda: store.snapshot().entry(name)

    def ensure_config(self, name: str, config: Mapping[str, str]) -> None:
        wanted = {**config, NAME: name}
        with self._herder() as (stores, herder):
            entry = stores.config.snapshot().entry(name)
            if entry is None or dict(entry.config or {}) != wanted:
                herder.acting_for(_origin()).put_config(name, wanted, by_task=True)
                log.info("[%s|worker] Connector config %s", name, "created" if entry is None else "updated")

    def ensure_paused(self, name: str, still_wanted: Callable[[], bool]) -> bool:
        with self._config_store() as store:
            entry = store.snapshot().entry(name)
            if entry is None or entry.target_state is not TargetState.STARTED or not still_wanted():
                return False
            store.put_target_state(name, TargetState.PAUSED, _origin())
            return True

    def mark_unassigned(self, name: str, trace: str | None = None) -> None:
        with self._herder() as (stores, herder):
            write_unassigned(stores.status, name)
            if not herder.report_at_rest(name) and trace is not None and stores.config.snapshot().entry(name) is not None:
                write_trace(stores.status, name, trace, self._worker.advertised_address)

    def mark_hosted_unassigned(self, application: str, trace: str) -> None:
        with open_stores(self._worker, brief=True) as stores:
            state = stores.config.snapshot()
            for name in state.names():
                entry = state.entry(name)
                if entry is not None and entry.application == application and entry.target_state is TargetState.STARTED:
                    write_unassigned(stores.status, name)
                    write_trace(stores.status, name, trace, self._worker.advertised_address)

    def spark_settings(self, application: str) -> dict[str, str]:
        with self._config_store() as store:
            state = store.snapshot()
        entries = [state.entry(name) for name in sorted(state.names(), reverse=True)]
        configs = [entry.config or {} for entry in entries if entry is not None and entry.application == application]
        return {key: value for config in configs for key, value in config.items() if key.startswith("spark.")}

    def await_change(self, name: str, seconds: float, interrupted: Callable[[], bool]) -> None:
        deadline = time.monotonic() + seconds
        changed = threading.Event()

        def on_change(kind: str, connector: str) -> None:
            if connector == name and kind in _REQUESTS:
                changed.set()

        with self._config_store(brief=False) as store:
            store.on_change(on_change)
            while not interrupted() and (left := deadline - time.monotonic()) > 0:
                if changed.wait(min(left, _INTERRUPTED_SECONDS)):
                    return

    def progress(self, name: str) -> ConnectorProgress | None:
        with open_view(self._worker) as view:
            return None if view.entry(name) is None else view.progress(name)

    def topics(self, name: str) -> list[str]:
        with self._status_store() as store:
            return store.topics(name)

    def failed(self, name: str, since: float) -> tuple[str, ...]:
        with self._status_store() as store:
            statuses = {"connector": store.connector(name)}
            statuses |= {f"task {number}": status for number, status in store.tasks(name).items()}
        return tuple(
            f"{what}: {(status.trace or 'no trace').partition(chr(10))[0]}"
            for what, status in statuses.items()
            if status is not None and status.state is State.FAILED and status.timestamp >= since * 1000
        )

    def progress_reader(self, name: str) -> Callable[[], ConnectorProgress]:
        entry = self.entry(name)
        if entry is None:
            raise NotFoundError(f"Connector {name} not found")
        config = resolve_client_keys(self._worker, entry.config or {})
        probe = KafkaProbe(self._worker, overrides(config, "admin"))
        read_at, topics = float("-inf"), list[str]()

        def read() -> ConnectorProgress:
            nonlocal read_at, topics
            # A source may write to a new topic at any time, but reading the status topic costs more than the offsets.
            if time.monotonic() - read_at >= (_TOPICS_SECONDS if topics else 0.0):
                read_at, topics = time.monotonic(), self.topics(name)
            return probe.progress(probe_request(name, config, self._worker, topics, own_admin=True))

        return read

    def driver(self, name: str) -> DriverSeen:
        with self._status_store() as store:
            return driver_seen(self._worker, store, name)

    def end_driver(self, name: str) -> bool:
        seen = self.driver(name)
        if seen.lives:
            log.info("[%s|worker] Asks its driver %s to drain and end", name, seen.worker_id)
            request_end(self._worker, name, seen.worker_id)
        return seen.lives

    def intervals(self) -> IntervalRuns:
        return IntervalRuns(self._worker)

    def warm_batch(self, batch: RequestedBatch) -> AbstractContextManager[WarmBatch]:
        return KafkaWarmBatch(self._worker, batch)

    def batch_seen(self, batch: RequestedBatch) -> BatchSeen:
        name = batch.connector
        with open_view(self._worker) as view:
            requested, report = view.batch(name)
            after = None if view.entry(name) is None else view.progress(name)
        own = report if report is not None and report.id == batch.id else None
        return BatchSeen(own, superseded=requested is not None and requested > batch.id, after=after)

    def cancel_batch(self, batch: RequestedBatch) -> None:
        cancel(self._worker, batch)

    @contextmanager
    def _herder(self) -> Iterator[tuple[Stores, Herder]]:
        with open_stores(self._worker, brief=True) as stores:
            yield stores, Herder(self._worker, stores.config, stores.status, stores.offsets)

    @contextmanager
    def _config_store(self, *, brief: bool = True) -> Iterator[ConfigBackingStore]:
        store = KafkaConfigBackingStore(self._worker, brief=brief)
        store.start()
        try:
            yield store
        finally:
            store.stop()

    @contextmanager
    def _status_store(self) -> Iterator[KafkaStatusBackingStore]:
        store = KafkaStatusBackingStore(self._worker, brief=True)
        store.start()
        try:
            yield store
        finally:
            store.stop()


def write_unassigned(store: StatusBackingStore, name: str) -> None:
    """Change RUNNING and RESTARTING of a connector and its tasks to UNASSIGNED, as Connect does when a worker is lost."""
    status = store.connector(name)
    if status is not None and status.state in _ALIVE:
        store.put_connector(name, _unassigned(status))
    for task, task_status in store.tasks(name).items():
        if task_status.state in _ALIVE:
            store.put_task(TaskId(name, task), _unassigned(task_status))


def write_trace(store: StatusBackingStore, name: str, trace: str, worker_id: str) -> None:
    """Write a trace to the status of a connector that is UNASSIGNED, or has no status because no driver ever wrote one."""
    status = store.connector(name) or Status(State.UNASSIGNED, worker_id, 0)
    if status.state is State.UNASSIGNED:
        store.put_connector(name, replace(status, trace=trace))


def _origin() -> Origin:
    """Return the origin of changes that this Airflow task makes."""
    dag, task = os.environ.get("AIRFLOW_CTX_DAG_ID"), os.environ.get("AIRFLOW_CTX_TASK_ID")
    return Origin(client="Airflow", note=f"task {dag}.{task}" if dag and task else None)


def _unassigned(status: Status) -> Status:
    return Status(State.UNASSIGNED, status.worker_id, status.generation)
