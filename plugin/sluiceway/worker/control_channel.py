"""Defines how a connector's runner publishes statuses and commands its tasks: through Kafka, or in standalone mode directly."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Protocol

from sluiceway.errors import ConnectError, InternalTopicError
from sluiceway.storage.interfaces import OffsetBackingStore, StatusBackingStore
from sluiceway.storage.model import State, Status, TaskId
from sluiceway.worker.executor import ServicesFactory

log = logging.getLogger(__name__)


class ControlChannel(Protocol):
    """One connector's channel. Runs on the driver; only the connector's runner thread calls it, except for ``stop_waiting``.

    Every method that publishes or removes a status raises FencedError once another driver has taken the connector over.
    """

    generation: int
    """Number of this run of the connector, for status records; valid after ``acquire``."""

    tasks_send_heartbeats: bool
    """True if running tasks rewrite their status periodically."""

    def raise_generation(self) -> int:
        """Increase the generation by one and return it.

        A task that is started again after its process was lost gets a higher generation. An earlier process that still runs
        somewhere stops without a commit when it reads a status of a generation higher than its own.
        """

    def acquire(self) -> None:
        """Take the connector's lease. The previous driver is fenced: its next status write fails."""

    def close(self) -> None: ...

    def stop_waiting(self) -> None:
        """Fail instead of waiting for an unreachable cluster, because the driver must stop. Callable from any thread."""

    def publish_connector(self, state: State, trace: str | None = None, *, version: str | None = None) -> None:
        """Write the connector's status."""

    def renew_connector(self, state: State, trace: str | None = None, *, version: str | None = None) -> None:
        """Let the driver's heartbeat say that the connector's status still holds."""

    def verify(self) -> None:
        """Raise FencedError if another driver is known to have taken the connector over. Called at each step of the runner."""

    @property
    def seconds_left(self) -> float:
        """Seconds until ``verify`` should be called again."""

    def publish_tasks(
        self,
        tasks: Iterable[int],
        state: State,
        trace: str | None = None,
        *,
        version: str | None = None,
        generation: int | None = None,
    ) -> None:
        """Write the same status for several tasks, by default with the current generation.

        For a task that runs with this generation, UNASSIGNED or RESTARTING without a trace is the command to stop.
        """

    def remove_task(self, task: int) -> None: ...

    def remove_connector(self) -> None: ...

    def known_tasks(self) -> list[int]:
        """Return the numbers of all tasks that have a status, in ascending order."""

    def failed_tasks(self) -> set[int]:
        """Return the tasks whose latest status is FAILED, including statuses that tasks have written themselves."""

    def task_statuses(self, *, refresh: bool = False) -> Mapping[int, Status]:
        """Return each task's last known status, including those that tasks have written themselves.

        With ``refresh``, read all statuses written so far first; raises ConnectError if that is not possible.
        """

    def resume_tasks(self, tasks: Iterable[int]) -> None: ...

    def pause_tasks(self, tasks: Iterable[int]) -> None: ...

    def stop_tasks(self, tasks: Iterable[int]) -> None: ...

    def release_tasks(self) -> None:
        """Let the running tasks commit and end, without a status, because Kafka Connect's workers run the connector."""

    def forget_release(self) -> None:
        """Remove what ``release_tasks`` has written."""

    def services(self, task: TaskId) -> ServicesFactory:
        """Return the factory that opens a task's connections on its executor. Commands sent after this call reach the task."""

    def source_offsets(self, config: Mapping[str, str]) -> AbstractContextManager[OffsetBackingStore]:
        """Open the store of the connector's offsets, if this is its config. Callable from any thread."""


class StatusPublisher:
    """The methods of ``ControlChannel`` that read and write a StatusBackingStore."""

    generation = 0
    tasks_send_heartbeats = False

    def __init__(self, connector: str, worker_id: str, status: StatusBackingStore) -> None:
        self._connector = connector
        self._worker_id = worker_id
        self._status = status

    def publish_connector(self, state: State, trace: str | None = None, *, version: str | None = None) -> None:
        self._status.put_connector(self._connector, self._status_of(state, trace, version))

    def renew_connector(self, state: State, trace: str | None = None, *, version: str | None = None) -> None:
        """See ``ControlChannel``. In memory, a repeated status is the heartbeat."""
        self.publish_connector(state, trace, version=version)

    def verify(self) -> None:
        """Do nothing: without a lease no other process can run the connector."""

    @property
    def seconds_left(self) -> float:
        return float("inf")

    def raise_generation(self) -> int:
        self.generation += 1
        return self.generation

    def release_tasks(self) -> None:
        """Do nothing: without a lease no other process can run the connector."""

    def forget_release(self) -> None:
        """Do nothing."""

    def publish_tasks(
        self,
        tasks: Iterable[int],
        state: State,
        trace: str | None = None,
        *,
        version: str | None = None,
        generation: int | None = None,
    ) -> None:
        status = self._status_of(state, trace, version)
        if generation is not None:
            status = replace(status, generation=generation)
        self._status.put_tasks({TaskId(self._connector, task): status for task in tasks})

    def remove_task(self, task: int) -> None:
        self._status.remove_task(TaskId(self._connector, task))

    def remove_connector(self) -> None:
        self._status.remove_connector(self._connector)

    def known_tasks(self) -> list[int]:
        return sorted(self._status.tasks(self._connector))

    def failed_tasks(self) -> set[int]:
        try:
            self._status.refresh()
        except InternalTopicError:
            raise
        except ConnectError as error:
            log.warning("[%s|worker] Cannot read the latest task statuses; using the last known ones: %s", self._connector, error)
        return {task for task, status in self._status.tasks(self._connector).items() if status.state is State.FAILED}

    def task_statuses(self, *, refresh: bool = False) -> Mapping[int, Status]:
        if refresh:
            self._status.refresh()
        return self._status.tasks(self._connector)

    def _status_of(self, state: State, trace: str | None, version: str | None) -> Status:
        return Status(state, self._worker_id, self.generation, trace, version)
