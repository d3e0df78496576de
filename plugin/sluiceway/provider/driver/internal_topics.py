"""What an Airflow task asks and tells the internal topics. Opened for each question: a task lives for weeks and asks twice."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from sluiceway.config.connector import NAME
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import NotFoundError
from sluiceway.herder.offset_edits import as_edits
from sluiceway.herder.plugin_path import use_plugin_path
from sluiceway.provider.dag_bundle.dag_keys import is_sink_config
from sluiceway.provider.driver.backfill import Backfill, has_own_group
from sluiceway.provider.progress.cluster_view import DriverSeen, open_view
from sluiceway.provider.progress.meter import Meter
from sluiceway.provider.progress.position import Position
from sluiceway.storage.interfaces import ConfigBackingStore, StatusBackingStore
from sluiceway.storage.model import ConnectorEntry, State, Status, TargetState, TaskId

log = logging.getLogger(__name__)

_TOPICS_SECONDS = 300.0
_ALIVE = (State.RUNNING, State.RESTARTING)


class Link(Protocol):
    """The seam between an operator and Kafka. Every call raises ConnectError when Kafka does not answer."""

    def entry(self, name: str) -> ConnectorEntry | None:
        """Return a connector that exists, or None."""

    def ensure_config(self, name: str, config: Mapping[str, str]) -> None:
        """Create the connector or change its config, if it differs; raises InvalidConfigError for one that is refused."""

    def ensure_paused(self, name: str, still_wanted: Callable[[], bool]) -> bool:
        """Ask for the connector to be paused, unless it is not to run anyway; whether that was needed.

        ``still_wanted`` is asked at the last moment: reaching Kafka may take long enough for a person to change their mind.
        """

    def mark_dead(self, name: str) -> None:
        """Say that a connector and its tasks do not run any more, where the status topic still says that they do.

        One that is to be paused or stopped becomes that, since no driver is left to say so.
        """

    def position(self, name: str) -> Position | None:
        """Return where a connector stands; None if there is none of that name."""

    def meter(self, name: str) -> Callable[[], Position]:
        """Return what tells where a connector stands, cheaply, again and again; a source's offsets are not among it."""

    def topics(self, name: str) -> list[str]:
        """Return the topics that a connector was seen to use."""

    def driver(self, name: str) -> DriverSeen:
        """Return what the status topic tells of a connector's driver."""

    def begin_backfill(self, backfill: Backfill) -> None:
        """Make the connector that a backfill runs, unless an earlier try has; its offsets are its own."""

    def end_backfill(self, name: str) -> None:
        """Remove the connector of that name, if it is still there, and its offsets. Waits some seconds for its driver."""


class KafkaLink:
    """The link over Kafka's three topics."""

    def __init__(self, worker: WorkerConfig) -> None:
        use_plugin_path(worker.raw)
        self._worker = worker

    def entry(self, name: str) -> ConnectorEntry | None:
        with _config_store(self._worker) as store:
            return store.snapshot().entry(name)

    def ensure_config(self, name: str, config: Mapping[str, str]) -> None:
        from sluiceway.herder import Herder
        from sluiceway.storage.factory import open_stores

        wanted = {**config, NAME: name}
        with open_stores(self._worker) as stores:
            entry = stores.config.snapshot().entry(name)
            if entry is None or dict(entry.config or {}) != wanted:
                Herder(self._worker, stores.config, stores.status, stores.offsets).put_config(name, wanted)
                log.info("[%s|worker] Connector config %s", name, "created" if entry is None else "updated")

    def ensure_paused(self, name: str, still_wanted: Callable[[], bool]) -> bool:
        with _config_store(self._worker) as store:
            entry = store.snapshot().entry(name)
            if entry is None or entry.target_state is not TargetState.STARTED or not still_wanted():
                return False
            store.put_target_state(name, TargetState.PAUSED)
            return True

    def mark_dead(self, name: str) -> None:
        from sluiceway.herder import Herder
        from sluiceway.storage.factory import open_stores

        with open_stores(self._worker) as stores:
            write_dead(stores.status, name)
            entry = stores.config.snapshot().entry(name)
            herder = Herder(self._worker, stores.config, stores.status, stores.offsets)
            if entry is not None and entry.target_state is TargetState.PAUSED:
                herder.pause(name)
            elif entry is not None and entry.target_state is TargetState.STOPPED:
                herder.stop(name)

    def position(self, name: str) -> Position | None:
        with open_view(self._worker) as view:
            return None if view.entry(name) is None else view.position(name)

    def topics(self, name: str) -> list[str]:
        from sluiceway.storage.status_backing_store import KafkaStatusBackingStore

        store = KafkaStatusBackingStore(self._worker)
        store.start()
        try:
            return store.topics(name)
        finally:
            store.stop()

    def meter(self, name: str) -> Callable[[], Position]:
        entry = self.entry(name)
        if entry is None:
            raise NotFoundError(f"Connector {name} not found")
        meter = Meter(self._worker, name, entry.config or {})
        topics: tuple[float, list[str]] = (float("-inf"), [])

        def look() -> Position:
            nonlocal topics
            # A source may begin to write to another topic at any time, but reading the status topic is the dearer part.
            if time.monotonic() - topics[0] >= (_TOPICS_SECONDS if topics[1] else 0.0):
                topics = time.monotonic(), self.topics(name)
            return meter.read(topics[1])

        return look

    def driver(self, name: str) -> DriverSeen:
        with open_view(self._worker) as view:
            return view.driver(name)

    def begin_backfill(self, backfill: Backfill) -> None:
        from sluiceway.herder import Herder
        from sluiceway.storage.factory import open_stores

        backfill = backfill.for_worker(self._worker)
        with open_stores(self._worker) as stores:
            herder = Herder(self._worker, stores.config, stores.status, stores.offsets)
            entry = stores.config.snapshot().entry(backfill.name)
            if entry is not None and entry.target_state is not TargetState.STOPPED:
                herder.resume(backfill.name)
                return
            if entry is None:
                herder.create(backfill.name, backfill.config, TargetState.STOPPED)
            # One that is stopped was left by a try that came to an end before it had said where to begin.
            if backfill.sink:
                starts = Meter(self._worker, backfill.name, backfill.config).offsets_at(
                    herder.topics(backfill.of), backfill.start
                )
                if starts:  # else none of its topics is there yet
                    herder.alter_offsets(backfill.name, as_edits(starts))
            herder.resume(backfill.name)

    def end_backfill(self, name: str) -> None:
        from sluiceway.herder import Herder
        from sluiceway.storage.factory import open_stores

        with open_stores(self._worker) as stores:
            entry = stores.config.snapshot().entry(name)
            if entry is None:
                return
            herder = Herder(self._worker, stores.config, stores.status, stores.offsets)
            herder.stop(name)
            config = entry.config or {}
            shared = is_sink_config(config) and not has_own_group(self._worker, name, config)
            if not shared and herder.offsets(name):
                herder.reset_offsets(name)
            herder.delete(name)


def write_dead(store: StatusBackingStore, name: str) -> None:
    """Turn a connector's and its tasks' RUNNING and RESTARTING into UNASSIGNED, as Connect does when a worker is lost."""
    status = store.connector(name)
    if status is not None and status.state in _ALIVE:
        store.put_connector(name, _unassigned(status))
    for task, task_status in store.tasks(name).items():
        if task_status.state in _ALIVE:
            store.put_task(TaskId(name, task), _unassigned(task_status))


def _unassigned(status: Status) -> Status:
    return Status(State.UNASSIGNED, status.worker_id, status.generation)


@contextmanager
def _config_store(worker: WorkerConfig) -> Iterator[ConfigBackingStore]:
    from sluiceway.storage.config_backing_store import KafkaConfigBackingStore

    store = KafkaConfigBackingStore(worker)
    store.start()
    try:
        yield store
    finally:
        store.stop()
