"""A task's commands in a process that runs many tasks: one reader passes records on to all of them. Runs on executors."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from sluiceway.kafka.kafka_based_log import LogRecord
from sluiceway.runtime.task import TaskCommand, TaskSpec
from sluiceway.worker.task_commands import command_in, next_command

log = logging.getLogger(__name__)


class SharedTaskControl:
    """Implements ``TaskControl``. ``on_end`` is called once the task must stop, on the reader's thread. Thread-safe."""

    def __init__(self, spec: TaskSpec, command: TaskCommand, on_end: Callable[[], None]) -> None:
        self._spec = spec
        self._on_end = on_end
        self._command = command
        self._woken = threading.Event()

    def command(self) -> TaskCommand:
        return self._command

    def wait(self, seconds: float) -> None:
        self._woken.wait(seconds)
        self._woken.clear()

    def wake(self) -> None:
        self._woken.set()

    def read(self, record: LogRecord) -> None:
        """Take in a record of the config or status topic, which may be a command to this task."""
        self.receive(command_in(record, self._spec))

    def receive(self, command: TaskCommand | None) -> None:
        following = next_command(self._command, command)
        if following is self._command:
            return
        log.info("[%s|task-%d] Received command %s", self._spec.id.connector, self._spec.id.task, following.value)
        self._command = following
        self._woken.set()
        if following in (TaskCommand.STOP, TaskCommand.ABANDON):
            self._on_end()
