"""A standalone task's connection to the driver: commands to it, its status and its offsets. Runs on executors."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.managers import BaseManager
from typing import Protocol, cast

from sluiceway.api.records import Offset, Partition
from sluiceway.runtime.task import TaskCommand, TaskServices, TaskSpec
from sluiceway.storage.model import State, Status, TaskId

_POLL_SECONDS = 0.05  # at least, between two calls for a task's command


class Endpoint(Protocol):
    """The driver's ``DriverEndpoint`` as a task calls it. Each call is a round trip through the socket."""

    def command(self, task: TaskId) -> TaskCommand: ...

    def report(self, task: TaskId, status: Status) -> None: ...

    def topic(self, task: TaskId, topic: str) -> None: ...

    def get_offsets(self, connector: str, partitions: list[Partition]) -> list[Offset | None]: ...

    def put_offsets(self, connector: str, offsets: list[tuple[Partition, Offset | None]]) -> None: ...


class _Manager(BaseManager):
    """Connects to the driver's ``DriverEndpointServer``."""


_Manager.register("endpoint")


@dataclass(frozen=True, slots=True)
class StandaloneTaskServices:
    """Opens a task's connection to the driver, on the same machine. Picklable.

    Args:
        address: path of the driver's Unix socket.
        authkey: shared secret of driver and tasks.
    """

    address: str
    authkey: bytes

    def open(self, spec: TaskSpec) -> TaskServices:
        manager = _Manager(address=self.address, authkey=self.authkey)
        manager.connect()
        endpoint = cast("Endpoint", manager.endpoint())  # type: ignore[attr-defined]  # made by register
        return TaskServices(
            control=_Control(endpoint, spec.id),
            reporter=_Reporter(endpoint, spec),
            offsets=None if spec.sink else _Offsets(endpoint),
        )


class _Control:
    """Asks the driver for the task's command, at most every 50 ms. A driver that no longer answers means ABANDON."""

    def __init__(self, endpoint: Endpoint, task: TaskId) -> None:
        self._endpoint = endpoint
        self._task = task
        self._command = TaskCommand.RUN
        self._asked = float("-inf")
        self._woken = threading.Event()

    def command(self) -> TaskCommand:
        now = time.monotonic()
        if now - self._asked >= _POLL_SECONDS:
            self._asked = now
            try:
                self._command = self._endpoint.command(self._task)
            except (EOFError, OSError):  # the driver has ended, so no commit can reach the offsets file
                self._command = TaskCommand.ABANDON
        return self._command

    def wait(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        before = self._command
        while (left := deadline - time.monotonic()) > 0 and self.command() is before:
            if self._woken.wait(min(_POLL_SECONDS, left)):
                break
        self._woken.clear()

    def wake(self) -> None:
        self._woken.set()


class _Reporter:
    """Sends a task's state, and the topics it uses, to the driver."""

    def __init__(self, endpoint: Endpoint, spec: TaskSpec) -> None:
        self._endpoint = endpoint
        self._spec = spec

    def report(self, state: State, trace: str | None = None) -> None:
        spec = self._spec
        self._endpoint.report(spec.id, Status(state, spec.worker_id, spec.generation, trace, spec.version))

    def topic(self, topic: str) -> None:
        self._endpoint.topic(self._spec.id, topic)


class _Offsets:
    """Reads and writes source offsets through the driver, which owns the offsets file."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    def start(self) -> None:
        """Do nothing: the driver has started its store."""

    def stop(self) -> None:
        """Do nothing: the driver stops its store."""

    def get(self, connector: str, partitions: Sequence[Partition]) -> list[Offset | None]:
        return self._endpoint.get_offsets(connector, list(partitions))

    def put(self, connector: str, offsets: Sequence[tuple[Partition, Offset | None]]) -> None:
        self._endpoint.put_offsets(connector, list(offsets))

    def all(self, connector: str) -> list[tuple[Partition, Offset]]:
        raise NotImplementedError("A task reads offsets by partition; only the driver can list a connector's offsets.")
