"""Chooses the host of a task, and finds tasks that should not share one. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from sluiceway.storage.model import TaskId

MOST_TASKS = 64
"""Number of tasks from which on another host is started, if it finds a slot."""

_SUSPECT_SECONDS = 120.0
_ALONE_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class Candidate:
    """A host as a task's placement sees it. ``group`` are tasks that may have ended their process; "" is everybody else."""

    name: str
    tasks: int
    group: str = ""


def choose_host(hosts: Sequence[Candidate], group: str, *, can_grow: Callable[[], bool]) -> str | None:
    """Return the least loaded host for a task of a group, or None if a new host must be started for it.

    ``can_grow`` returns False if a new host would find no slot. Then any host is better than none.
    """
    own = [host for host in hosts if host.group == group]
    with_room = [host for host in own if host.tasks < MOST_TASKS]
    usable = with_room or ([] if can_grow() else own or hosts)
    return min(usable, key=lambda host: host.tasks).name if usable else None


@dataclass(slots=True)
class Suspects:
    """Tasks whose host's process has ended by itself. One of them may have ended it, and must not go on ending the others.

    The tasks of such a host start again together, apart from all others. If they lose that host too, each half of them gets a
    host of its own, and so on, until a task is alone. What lives for two minutes is above suspicion again.
    """

    _group: dict[TaskId, tuple[str, float]] = field(default_factory=dict)
    _count: int = 0

    def group(self, task: TaskId, now: float) -> str:
        group, since = self._group.get(task, ("", 0.0))
        if group and now - since > _SUSPECT_SECONDS:
            del self._group[task]
            return ""
        return group

    def crashed(self, tasks: Iterable[TaskId], now: float) -> None:
        """Note that the process of a host with these tasks has ended."""
        ordered = sorted(tasks, key=str)
        again = [bool(self.group(task, now)) for task in ordered]
        self._count += 1
        parts = 2 if all(again) and len(ordered) > 1 else 1
        for number, task in enumerate(ordered):
            self._group[task] = f"{self._count}-{number % parts}", now


def is_busy(share: float, neighbors: int) -> bool:
    """Return whether a task that uses this share of a core has to leave its neighbors alone."""
    return share > _ALONE_SHARE and neighbors > 0
