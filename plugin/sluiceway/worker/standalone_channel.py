"""Standalone mode's control channel, and the server through which its tasks reach the driver.

There are no internal topics. The driver keeps commands, statuses and offsets, and serves them to the tasks of the same machine
on a Unix socket, with ``multiprocessing.managers``. Runs on the driver.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from multiprocessing.managers import BaseManager

from sluiceway.api.records import Offset, Partition
from sluiceway.config.worker import WorkerConfig
from sluiceway.runtime.task import TaskCommand
from sluiceway.storage.interfaces import OffsetBackingStore, StatusBackingStore
from sluiceway.storage.model import Status, TaskId
from sluiceway.worker.control_channel import StatusPublisher
from sluiceway.worker.executor import ServicesFactory
from sluiceway.worker.standalone_task_services import StandaloneTaskServices


class DriverEndpoint:
    """Answers the calls of all tasks, on the manager's threads, one for each task. Runners set the commands."""

    def __init__(self, status: StatusBackingStore, offsets: OffsetBackingStore) -> None:
        self._status = status
        self.offsets = offsets
        self._commands: dict[TaskId, TaskCommand] = {}

    def set_command(self, task: TaskId, command: TaskCommand) -> None:
        self._commands[task] = command

    def command(self, task: TaskId) -> TaskCommand:
        return self._commands.get(task, TaskCommand.RUN)

    def report(self, task: TaskId, status: Status) -> None:
        self._status.put_task(task, status)

    def topic(self, task: TaskId, topic: str) -> None:
        self._status.put_topic(task.connector, task.task, topic)

    def get_offsets(self, connector: str, partitions: list[Partition]) -> list[Offset | None]:
        return self.offsets.get(connector, partitions)

    def put_offsets(self, connector: str, offsets: list[tuple[Partition, Offset | None]]) -> None:
        self.offsets.put(connector, offsets)


class DriverEndpointServer:
    """Serves a DriverEndpoint to tasks until ``close``, on a thread of its own."""

    def __init__(self, endpoint: DriverEndpoint) -> None:
        authkey = secrets.token_bytes(32)

        class Manager(BaseManager):  # registration is kept in the class, so each server needs its own
            pass

        Manager.register("endpoint", callable=lambda: endpoint)
        # Without an address, multiprocessing makes a socket in a temporary folder and removes both when the process ends.
        self._server = Manager(authkey=authkey).get_server()
        threading.Thread(target=self._serve, name="driver-endpoint", daemon=True).start()
        self.services = StandaloneTaskServices(str(self._server.address), authkey)

    def _serve(self) -> None:
        try:
            self._server.serve_forever()
        except SystemExit:  # serve_forever always ends with it
            return

    def close(self) -> None:
        self._server.stop_event.set()  # type: ignore[attr-defined]


class StandaloneControlChannel(StatusPublisher):
    """See ``ControlChannel``. Needs no lease, because no other process can run the connector."""

    def __init__(
        self,
        connector: str,
        worker: WorkerConfig,
        status: StatusBackingStore,
        endpoint: DriverEndpoint,
        services: StandaloneTaskServices,
    ) -> None:
        super().__init__(connector, worker_id=worker.advertised_address, status=status)
        self._endpoint = endpoint
        self._services = services

    def acquire(self) -> None:
        """Do nothing: there is no lease."""

    def close(self) -> None:
        """Do nothing: the channel holds no resource of its own."""

    def stop_waiting(self) -> None:
        """Do nothing: no call waits."""

    def resume_tasks(self, tasks: Iterable[int]) -> None:
        self._send(tasks, TaskCommand.RUN)

    def pause_tasks(self, tasks: Iterable[int]) -> None:
        self._send(tasks, TaskCommand.PAUSE)

    def stop_tasks(self, tasks: Iterable[int]) -> None:
        self._send(tasks, TaskCommand.STOP)

    def _send(self, tasks: Iterable[int], command: TaskCommand) -> None:
        for task in tasks:
            self._endpoint.set_command(TaskId(self._connector, task), command)

    def source_offsets(self, config: Mapping[str, str]) -> AbstractContextManager[OffsetBackingStore]:
        return nullcontext(self._endpoint.offsets)

    def services(self, task: TaskId) -> ServicesFactory:
        self._endpoint.set_command(task, TaskCommand.RUN)
        return self._services
