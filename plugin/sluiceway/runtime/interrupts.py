"""Exceptions that end a task's wait when a command arrives. Raised inside tasks, never out of them.

Both derive from BaseException, as asyncio.CancelledError does, so that an ``except Exception`` in the runtime or in a
connector does not mistake a command for a failure. Clean up in ``finally`` or ``except BaseException``.
"""

from __future__ import annotations

import time

from sluiceway.runtime.task import TaskCommand, TaskControl


class Interrupted(BaseException):
    """The task must pause or stop."""


class Abandoned(BaseException):
    """The task must stop at once, commit nothing and report nothing."""


def check_abandoned(control: TaskControl) -> None:
    """Raise Abandoned if that is the task's command."""
    if control.command() is TaskCommand.ABANDON:
        raise Abandoned


def check_interrupted(control: TaskControl) -> None:
    """Raise Abandoned, or Interrupted if the task must stop. PAUSE does not interrupt."""
    check_abandoned(control)
    if control.command() is TaskCommand.STOP:
        raise Interrupted


class StopGrace:
    """Lets a wait go on for ``seconds`` after the task's command has become STOP, so that it can end what it has begun."""

    def __init__(self, control: TaskControl, seconds: float) -> None:
        self._control = control
        self._seconds = seconds
        self._since: float | None = None

    def check(self) -> None:
        """Raise Abandoned, or Interrupted once the time is over. Call it again and again while the wait lasts."""
        command = self._control.command()
        if command is TaskCommand.ABANDON:
            raise Abandoned
        if command is not TaskCommand.STOP:
            return
        if self._since is None:
            self._since = time.monotonic()
        if time.monotonic() - self._since >= self._seconds:
            raise Interrupted
