"""Waits in a sink task without losing its membership in the consumer group."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from sluiceway.runtime.interrupts import Abandoned, Interrupted
from sluiceway.runtime.sink.task_consumer import TaskConsumer
from sluiceway.runtime.task import TaskCommand, TaskControl

POLL_SECONDS = 0.4  # a new command is noticed within this time
IDLE_POLL_SECONDS = 0.8  # by a task without records: each poll costs processor time, even if it returns none


class SinkTaskWait:
    """Waits until a time is over or the task gets another command. Call it with seconds; 0 only checks the command.

    Between the task's calls, all partitions are paused and the consumer is polled, which keeps the membership. Inside one of
    them nothing is polled, because a task must not be given or lose partitions then; and PAUSE does not interrupt it.
    """

    def __init__(self, control: TaskControl, consumer: TaskConsumer) -> None:
        self._control = control
        self._consumer = consumer
        self._in_task = False

    @contextmanager
    def task_call(self) -> Iterator[None]:
        """Mark the time in which the task is inside one of its calls."""
        before, self._in_task = self._in_task, True
        try:
            yield
        finally:
            self._in_task = before

    def __call__(self, seconds: float) -> None:
        """Raise Interrupted or Abandoned if the task gets another command."""
        until = time.monotonic() + seconds
        polls = seconds > 0 and not self._in_task
        if polls:
            self._consumer.pause()
        try:
            while True:
                self._check_command()
                left = until - time.monotonic()
                if left <= 0:
                    return
                if polls:
                    self._consumer.idle(min(left, POLL_SECONDS))
                else:
                    self._control.wait(min(left, POLL_SECONDS))
        finally:
            if polls:
                self._consumer.resume()

    def _check_command(self) -> None:
        command = self._control.command()
        if command is TaskCommand.ABANDON:
            raise Abandoned
        if command is TaskCommand.STOP or (command is TaskCommand.PAUSE and not self._in_task):
            raise Interrupted
