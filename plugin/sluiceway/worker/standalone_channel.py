"""Standalone mode's channel between the driver and its tasks: no topics, so the driver serves orders, statuses and offsets.

The driver listens on a Unix socket with ``multiprocessing.managers``; tasks run on the same machine.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.managers import BaseManager
from typing import Any

from sluiceway.api.records import Offset, Partition
from sluiceway.runtime.task import Order, TaskServices, TaskSpec
from sluiceway.storage.interfaces import OffsetBackingStore, StatusBackingStore
from sluiceway.storage.model import State, Status, TaskId

_POLL = 0.05  # seconds between two looks at a task's order


class TaskHost:
    """What the driver answers to its tasks. Called from the manager's threads."""

    def __init__(self, status: StatusBackingStore, offsets: OffsetBackingStore) -> None:
        self._status = status
        self._offsets = offsets
        self._orders: dict[TaskId, Order] = {}

    def set_order(self, task: TaskId, order: Order) -> None:
        self._orders[task] = order

    def order(self, task: TaskId) -> Order:
        return self._orders.get(task, Order.RUN)

    def report(self, task: TaskId, status: Status) -> None:
        self._status.put_task(task, status)

    def topic(self, task: TaskId, topic: str) -> None:
        self._status.put_topic(task.connector, task.task, topic)

    def get_offsets(self, connector: str, partitions: list[Partition]) -> list[Offset | None]:
        return self._offsets.get(connector, partitions)

    def put_offsets(self, connector: str, offsets: list[tuple[Partition, Offset | None]]) -> None:
        self._offsets.put(connector, offsets)


class _HostManager(BaseManager):
    """Carries calls to the TaskHost over a Unix socket."""


class HostServer:
    """Serves a TaskHost to the tasks until ``close``. Runs on the driver."""

    def __init__(self, host: TaskHost) -> None:
        authkey = secrets.token_bytes(32)

        class Manager(BaseManager):
            pass

        Manager.register("host", callable=lambda: host)
        # Without an address, multiprocessing makes a socket in a folder of its own and removes both when the process ends.
        self._server = Manager(authkey=authkey).get_server()
        threading.Thread(target=self._serve, name="task-host", daemon=True).start()
        self.services = HostServices(str(self._server.address), authkey)

    def _serve(self) -> None:
        try:
            self._server.serve_forever()
        except SystemExit:  # how the manager's server ends
            return

    def close(self) -> None:
        self._server.stop_event.set()  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class HostServices:
    """Opens a task's connection to the driver's TaskHost. Runs on an executor of the same machine."""

    address: str
    authkey: bytes

    def open(self, spec: TaskSpec) -> TaskServices:
        _HostManager.register("host")
        manager = _HostManager(address=self.address, authkey=self.authkey)
        manager.connect()
        host: Any = manager.host()  # type: ignore[attr-defined]
        return TaskServices(
            control=_HostControl(host, spec.id),
            reporter=_HostReporter(host, spec),
            offsets=None if spec.sink else _HostOffsets(host),
        )


class _HostControl:
    """Asks the driver for the task's order, at most every 50 ms. A driver that does not answer any more means stop."""

    def __init__(self, host: Any, task: TaskId) -> None:
        self._host = host
        self._task = task
        self._order = Order.RUN
        self._asked = float("-inf")

    def order(self) -> Order:
        now = time.monotonic()
        if now - self._asked >= _POLL:
            self._asked = now
            try:
                self._order = self._host.order(self._task)
            except (EOFError, OSError):  # the driver is gone, and nobody could take a commit
                self._order = Order.ABANDON
        return self._order

    def wait(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        before = self._order
        while (left := deadline - time.monotonic()) > 0 and self.order() is before:
            time.sleep(min(_POLL, left))

    def close(self) -> None:
        """The connection ends with the process."""


class _HostReporter:
    """Tells the driver about the task's state."""

    def __init__(self, host: Any, spec: TaskSpec) -> None:
        self._host = host
        self._spec = spec

    def report(self, state: State, trace: str | None = None) -> None:
        spec = self._spec
        self._host.report(spec.id, Status(state, spec.worker_id, spec.generation, trace, spec.version))

    def topic(self, topic: str) -> None:
        self._host.topic(self._spec.id, topic)


class _HostOffsets:
    """Reads and writes source offsets through the driver, which owns the offsets file."""

    def __init__(self, host: Any) -> None:
        self._host = host

    def start(self) -> None:
        """The driver's store is started already."""

    def stop(self) -> None:
        """The driver's store goes on."""

    def get(self, connector: str, partitions: Sequence[Partition]) -> list[Offset | None]:
        return self._host.get_offsets(connector, list(partitions))

    def put(self, connector: str, offsets: Sequence[tuple[Partition, Offset | None]]) -> None:
        self._host.put_offsets(connector, list(offsets))

    def all(self, connector: str) -> list[tuple[Partition, Offset]]:
        raise NotImplementedError("tasks read offsets by partition")
