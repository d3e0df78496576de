"""Groups what a connector reads, such as tables or indexes, by task. No I/O."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Generic, TypeVar

Unit = TypeVar("Unit", bound=Hashable)


class Groups(Generic[Unit]):
    """Groups units by task, with as few changes as possible: a task whose units stay the same is not restarted."""

    def __init__(self) -> None:
        self._groups: list[list[Unit]] = []

    def assign(self, units: Sequence[Unit], max_groups: int) -> list[list[Unit]]:
        """Return the units in at most ``max_groups`` groups, and remember the groups for the next call."""
        existing, assigned = set(units), {unit for group in self._groups for unit in group}
        count = min(max_groups, len(units))
        groups = [[unit for unit in group if unit in existing] for group in self._groups]
        groups += [[] for _ in range(count - len(groups))]
        for unit in units:
            if unit not in assigned:
                min(groups, key=len).append(unit)
        for group in groups[count:]:  # tasks are numbered without gaps, so the last ones end
            for unit in group:
                min(groups[:count], key=len).append(unit)
        groups = groups[:count]
        for group in groups:
            if not group:  # all its units are gone
                group.append(max(groups, key=len).pop())
        self._groups = groups
        return [list(group) for group in groups]
