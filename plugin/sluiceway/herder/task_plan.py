"""Which tasks have to be stopped and started when a connector's task configs change. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """Numbers of tasks: ``gone`` ones are stopped for good, ``changed`` ones stopped and started, ``new`` ones started."""

    gone: tuple[int, ...]
    changed: tuple[int, ...]
    new: tuple[int, ...]


def plan_tasks(
    present: Mapping[int, Mapping[str, str]], wanted: Sequence[Mapping[str, str]], *, undisturbed: bool = True
) -> TaskPlan:
    """Return the way from the tasks that there are (configs by number) to those that are wanted.

    Equal ones go on if they may be left ``undisturbed``; otherwise they count as changed.
    """
    return TaskPlan(
        gone=tuple(sorted(number for number in present if number >= len(wanted))),
        changed=tuple(
            number
            for number, config in enumerate(wanted)
            if number in present and not (undisturbed and dict(present[number]) == dict(config))
        ),
        new=tuple(number for number in range(len(wanted)) if number not in present),
    )
