"""Decides which tasks to stop and start when a connector's task configs change. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """Task numbers: ``gone`` tasks are stopped, ``changed`` tasks are stopped and started, ``new`` tasks are started."""

    gone: tuple[int, ...]
    changed: tuple[int, ...]
    new: tuple[int, ...]


def plan_tasks(
    present: Mapping[int, Mapping[str, str]], wanted: Sequence[Mapping[str, str]], *, keep_unchanged: bool = True
) -> TaskPlan:
    """Return the changes from the present tasks (configs by number) to the wanted ones.

    Tasks with an equal config keep running with ``keep_unchanged``; otherwise they count as changed.
    """
    return TaskPlan(
        gone=tuple(sorted(number for number in present if number >= len(wanted))),
        changed=tuple(
            number
            for number, config in enumerate(wanted)
            if number in present and not (keep_unchanged and dict(present[number]) == dict(config))
        ),
        new=tuple(number for number in range(len(wanted)) if number not in present),
    )
