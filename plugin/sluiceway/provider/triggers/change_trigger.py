"""The trigger behind ``airflow.schedule=on-change``: starts a source's run when its system has something new."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, NamedTuple

from airflow.triggers.base import BaseEventTrigger, TriggerEvent

from sluiceway.config.worker import WorkerConfig
from sluiceway.provider.progress.cluster_view import ClusterKey, ClusterView, DriverSeen
from sluiceway.provider.triggers.change_gate import ChangeGate
from sluiceway.provider.triggers.cluster_polling import ClusterPolling
from sluiceway.provider.triggers.watch_thread import Seen, WatchThread
from sluiceway.storage.model import TargetState


class _Connector(NamedTuple):
    """A connector as the internal topics have it. ``config`` is None if it does not exist."""

    worker: WorkerConfig
    config: Mapping[str, str] | None
    driver: DriverSeen
    paused: bool


class ChangeTrigger(BaseEventTrigger):
    """Fires each time that a change in a source's system requires a run (``ChangeGate``).

    Path and arguments are stored in Airflow's database with the asset watcher. They have nothing of the config, which the
    trigger reads from the config topic, and resolves in the triggerer.

    Args:
        connector: the source's name.
        worker_file: path of the worker's properties file on the triggerer's machine.
        interval: seconds between two polls of the connector, and between two questions to its system.
        patience: seconds after which a run that failed is required again.
    """

    def __init__(self, connector: str, worker_file: str, interval: float = 0.5, patience: float = 600.0) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Airflow's
        self.connector = connector
        self.worker_file = worker_file
        self.interval = interval
        self.patience = patience

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path and the arguments that Airflow stores."""
        names = ("connector", "worker_file", "interval", "patience")
        return "sluiceway.provider.triggers.ChangeTrigger", {name: getattr(self, name) for name in names}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Poll forever; yield an event with the key ``connector`` each time that a run must start."""
        gate, last = ChangeGate(self.patience), None
        polling = ClusterPolling(ClusterKey(self.worker_file), self.interval, self.log)
        with WatchThread(self.connector, self.interval, self.log) as watch:
            async with polling:
                async for found in polling.poll(self._read):
                    watch.want(found.worker, found.config)
                    seen: Seen | None = watch.seen
                    if seen is not None and seen.build != last:
                        last = seen.build
                        gate.forget()
                    if gate.opens(None if seen is None else seen.mark, found.driver, paused=found.paused):
                        yield TriggerEvent({"connector": self.connector})

    def _read(self, view: ClusterView) -> _Connector:
        entry = view.entry(self.connector)
        config = None if entry is None else entry.config
        paused = entry is not None and entry.target_state is not TargetState.STARTED
        return _Connector(view.worker, config, view.driver(self.connector), paused)
