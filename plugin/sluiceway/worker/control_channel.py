"""How a runner reaches the world: the connector's lease, statuses, and orders to its tasks."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Protocol

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError, InternalTopicError
from sluiceway.runtime.task import Order
from sluiceway.storage.interfaces import StatusBackingStore
from sluiceway.storage.model import State, Status, TaskId
from sluiceway.worker.executor import ServicesFactory
from sluiceway.worker.standalone_channel import HostServices, TaskHost

log = logging.getLogger(__name__)


class ConnectorPort(Protocol):
    """One connector's port. Used by its runner's thread only; ``generation`` is known after ``acquire``.

    Every publishing call raises FencedError when a newer driver has taken the connector over.
    """

    generation: int

    def acquire(self) -> None:
        """Take the connector's lease; an older driver is fenced at its next heartbeat."""

    def close(self) -> None: ...

    def hurry(self) -> None:
        """Wait no longer for what is away: the driver is to end. Callable from any thread."""

    def publish_connector(self, state: State, trace: str | None = None, *, version: str | None = None) -> None:
        """Write the connector's status; repeated, it is the driver's heartbeat."""

    def publish_tasks(self, tasks: Iterable[int], state: State, trace: str | None = None, *, version: str | None = None) -> None:
        """Write the status of some tasks, all alike."""

    def remove_task(self, task: int) -> None: ...

    def remove_connector(self) -> None: ...

    def known_tasks(self) -> list[int]:
        """Return the numbers of the tasks that have a status."""

    def failed_tasks(self) -> set[int]:
        """Return the tasks that are FAILED by what has been said of them up to now, be it by themselves."""

    def order_run(self, tasks: Iterable[int]) -> None: ...

    def order_pause(self, tasks: Iterable[int]) -> None: ...

    def order_stop(self, tasks: Iterable[int]) -> None: ...

    def services(self, task: TaskId) -> ServicesFactory:
        """Return what the task is to open where it runs; orders given after this call will reach it."""


class StatusPublisher:
    """The part of a port that writes through a StatusBackingStore."""

    generation = 0

    def __init__(self, connector: str, worker_id: str, status: StatusBackingStore) -> None:
        self._connector = connector
        self._worker_id = worker_id
        self._status = status

    def _record(self, state: State, trace: str | None, version: str | None) -> Status:
        return Status(state, self._worker_id, self.generation, trace, version)

    def publish_connector(self, state: State, trace: str | None = None, *, version: str | None = None) -> None:
        self._status.put_connector(self._connector, self._record(state, trace, version))

    def publish_tasks(self, tasks: Iterable[int], state: State, trace: str | None = None, *, version: str | None = None) -> None:
        record = self._record(state, trace, version)
        self._status.put_tasks({TaskId(self._connector, task): record for task in tasks})

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
            log.warning("[%s|worker] The newest statuses cannot be read: %s", self._connector, error)
        return {task for task, status in self._status.tasks(self._connector).items() if status.state is State.FAILED}


class HostPort(StatusPublisher):
    """Standalone mode's port: one driver by construction, so no lease; orders go through the TaskHost."""

    def __init__(
        self, connector: str, worker: WorkerConfig, status: StatusBackingStore, host: TaskHost, services: HostServices
    ) -> None:
        super().__init__(connector, worker_id=worker.advertised_address, status=status)
        self._host = host
        self._services = services

    def acquire(self) -> None:
        """Nobody else can run this connector."""

    def close(self) -> None:
        """Nothing is held."""

    def hurry(self) -> None:
        """Nothing is waited for."""

    def order_run(self, tasks: Iterable[int]) -> None:
        self._order(tasks, Order.RUN)

    def order_pause(self, tasks: Iterable[int]) -> None:
        self._order(tasks, Order.PAUSE)

    def order_stop(self, tasks: Iterable[int]) -> None:
        self._order(tasks, Order.STOP)

    def _order(self, tasks: Iterable[int], order: Order) -> None:
        for task in tasks:
            self._host.set_order(TaskId(self._connector, task), order)

    def services(self, task: TaskId) -> ServicesFactory:
        self._host.set_order(task, Order.RUN)
        return self._services
