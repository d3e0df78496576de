"""Spreads the connectors of a shared application over several, by ``sluiceway.application.max.tasks``. Runs on the driver.

Of the applications of a name, the driver of the one with the lowest number that is alive places all connectors. Two that do so
at once agree, because each change of the config topic is decided on its newest state.
"""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable
from dataclasses import replace

from sluiceway.config.application import number_of
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError
from sluiceway.herder.application_plan import alive, gone, members, plan_placement
from sluiceway.herder.states import Clock
from sluiceway.storage.interfaces import ConfigBackingStore, StatusBackingStore
from sluiceway.storage.model import ClusterState, State, TaskId

log = logging.getLogger(__name__)

_CHECK_SECONDS = 5.0  # between two looks at the heartbeats of the other applications


class ApplicationPlacer:
    """Places connectors that have no application yet, and those whose application is gone. For the driver's thread.

    Args:
        application: the application that this driver runs.
        worker: the worker's config. Without a limit of tasks, nothing is placed.
        config: the config topic's store.
        status: the status topic's store.
    """

    def __init__(
        self,
        application: str,
        worker: WorkerConfig,
        config: ConfigBackingStore,
        status: StatusBackingStore,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._application = application
        self._applications = worker.applications
        self._timeout = worker.number("sluiceway.heartbeat.timeout.ms")
        self._config = config
        self._status = status
        self._clock = clock
        self._read_to = -1
        self._check_at = 0.0
        self._moved: dict[str, str] = {}
        """Connectors whose dead driver's statuses must still be replaced, with the reason."""

    def place(self, state: ClusterState) -> None:
        """Place connectors if the config topic has changed or the heartbeats must be looked at. Cheap otherwise."""
        now = self._clock()
        if self._applications.max_tasks is None or (state.offset == self._read_to and now < self._check_at):
            return
        self._read_to, self._check_at = state.offset, now + _CHECK_SECONDS
        if not self._replace_statuses():
            return  # or the dead driver's statuses would move the connectors again
        for name in self._names(state):
            if not self._plan(state, name):
                continue
            try:
                self._config.put_placed(functools.partial(self._placed, name))
            except ConnectError as error:
                log.warning("Cannot store which application of %s runs its connectors, trying again: %s", name, error)
                self._read_to = -1
        self._replace_statuses()

    def _replace_statuses(self) -> bool:
        """Report moved connectors and their tasks as UNASSIGNED; return whether that succeeded."""
        try:
            for name, reason in list(self._moved.items()):
                own = self._status.connector(name)
                if own is not None and self._now().stale(own):  # otherwise its new driver has written its own already
                    self._status.put_connector(name, replace(own, state=State.UNASSIGNED, trace=reason))
                    for task, status in self._status.tasks(name).items():
                        self._status.put_task(TaskId(name, task), replace(status, state=State.UNASSIGNED, trace=None))
                del self._moved[name]
        except ConnectError as error:
            log.warning("Cannot write the statuses of connectors that were moved, trying again: %s", error)
            return False
        return True

    def _now(self) -> Clock:
        return Clock(int(self._clock() * 1000), self._timeout)

    def _names(self, state: ClusterState) -> set[str]:
        """Return the names of which this application is one."""
        entries = (entry for entry in state.connectors.values() if entry.config is not None)
        names = {self._applications.membership(entry.config or {}).application for entry in entries}
        return {name for name in names if name is not None and number_of(self._application, name) is not None}

    def _placed(self, name: str, newest: ClusterState) -> dict[str, str]:
        plan = self._plan(newest, name)
        for connector, application in plan.items():
            entry = newest.entry(connector)
            if entry is None or entry.placed is None:
                log.info("[%s|worker] Application %s runs it", connector, application)
                continue
            log.warning("[%s|worker] Application %s is gone; %s runs it now", connector, entry.placed, application)
            self._moved[connector] = f"Application {entry.placed} has sent no heartbeats. Application {application} runs it now."
        return plan

    def _plan(self, state: ClusterState, name: str) -> dict[str, str]:
        clock = self._now()
        entries, statuses = members(state, self._applications, name), self._status.snapshot()
        own = number_of(self._application, name) or 0
        lower = [number for each in alive(entries, statuses, clock) if (number := number_of(each, name)) and number < own]
        if lower:
            return {}
        lost = gone(entries, statuses, clock) - {self._application}
        return plan_placement(entries, name, self._applications.max_tasks or 1, lost)
