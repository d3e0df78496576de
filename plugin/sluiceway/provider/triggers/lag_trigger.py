"""The trigger behind ``airflow.schedule=lag:<n>``: starts a sink's run when enough records are available."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from typing import Any

from airflow.triggers.base import BaseEventTrigger, TriggerEvent

from sluiceway.provider.progress.cluster_view import ClusterKey, ClusterView
from sluiceway.provider.progress.connector_progress import ConnectorProgress
from sluiceway.provider.triggers.cluster_polling import ClusterPolling
from sluiceway.storage.model import TargetState


class LagTrigger(BaseEventTrigger):
    """Fires each time that a sink's lag requires a run (``LagGate``).

    Path and arguments are stored in Airflow's database with the asset watcher, so they must stay compatible with those that
    0.1.0 stored.

    Args:
        connector: the sink's name.
        at_least: the lag that requires a run, in records.
        worker_file: path of the worker's properties file on the triggerer's machine.
        interval: seconds between two polls.
        patience: seconds after which an unchanged lag fires again.
    """

    def __init__(self, connector: str, at_least: int, worker_file: str, interval: float = 5.0, patience: float = 600.0) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Airflow's
        self.connector = connector
        self.at_least = at_least
        self.worker_file = worker_file
        self.interval = interval
        self.patience = patience

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path and the arguments that Airflow stores."""
        names = ("connector", "at_least", "worker_file", "interval", "patience")
        return "sluiceway.provider.triggers.LagTrigger", {name: getattr(self, name) for name in names}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Poll forever; yield an event with the keys ``connector`` and ``lag`` each time that a run must start."""
        gate = LagGate(self.at_least, self.patience)

        def read(view: ClusterView) -> tuple[ConnectorProgress, bool, bool]:
            entry = view.entry(self.connector)
            paused = entry is not None and entry.target_state is not TargetState.STARTED
            return view.progress(self.connector), view.driver(self.connector).lives, paused

        async with ClusterPolling(ClusterKey(self.worker_file), self.interval, self.log) as polling:
            async for progress, running, paused in polling.poll(read):
                if gate.opens(progress.lag, progress.count, running=running, paused=paused):
                    yield TriggerEvent({"connector": self.connector, "lag": progress.lag})


class LagGate:
    """Decides when a sink's lag requires a run. No I/O, except for the clock.

    Opens while no driver runs. An unchanged lag opens it again only after a commit, or after ``patience`` seconds: until then a
    run is starting, or has just failed. Closed while the connector is paused and for one poll after it resumes, because Airflow
    drops asset events for paused DAGs.
    """

    def __init__(self, at_least: int, patience: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._at_least = at_least
        self._patience = patience
        self._clock = clock
        self._opened_at = float("-inf")
        self._committed_then: int | None = None
        self._was_paused = False

    def opens(self, lag: int | None, committed: int | None, *, running: bool, paused: bool = False) -> bool:
        """Return whether a run must start now. Call once for each poll.

        Args:
            lag: records left to commit; None if unknown.
            committed: records committed so far; None if unknown.
            running: whether a driver runs the connector.
            paused: whether its target state is PAUSED or STOPPED.
        """
        was_paused, self._was_paused = self._was_paused, paused
        if paused or was_paused or running or lag is None or lag < self._at_least:
            return False
        if committed == self._committed_then and self._clock() - self._opened_at < self._patience:
            return False
        self._committed_then, self._opened_at = committed, self._clock()
        return True
