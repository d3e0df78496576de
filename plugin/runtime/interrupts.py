"""Orders that end a loop wherever it is waiting. Raised inside the loops, never out of them."""

from __future__ import annotations

from sluiceway.runtime.task import Order, TaskControl


class Interrupted(Exception):  # noqa: N818 (not an error)
    """The task is to do something else than moving records."""


class Abandoned(Exception):  # noqa: N818 (not an error)
    """The task is to stop at once and commit nothing."""


def check_abandoned(control: TaskControl) -> None:
    if control.order() is Order.ABANDON:
        raise Abandoned


def check_interrupted(control: TaskControl) -> None:
    """Raise Abandoned, or Interrupted if the task is to stop."""
    check_abandoned(control)
    if control.order() is Order.STOP:
        raise Interrupted
