"""Commands that end a task's wait. Raised inside the task loops, never out of them.

Both derive from BaseException, as asyncio.CancelledError does: an ``except Exception`` that handles failures, be it the
runtime's or a connector's, must not take a command for a failure. Clean-up belongs in ``finally`` or ``except BaseException``.
"""

from __future__ import annotations

from sluiceway.runtime.task import TaskCommand, TaskControl


class Interrupted(BaseException):
    """The task must pause or stop."""


class Abandoned(BaseException):
    """The task must stop at once, commit nothing and report nothing."""


def check_abandoned(control: TaskControl) -> None:
    if control.command() is TaskCommand.ABANDON:
        raise Abandoned


def check_interrupted(control: TaskControl) -> None:
    """Raise Abandoned, or Interrupted if the task is to stop."""
    check_abandoned(control)
    if control.command() is TaskCommand.STOP:
        raise Interrupted
