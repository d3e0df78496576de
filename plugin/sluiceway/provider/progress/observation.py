"""One look at how a connector fares, for sensors."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sluiceway.storage.model import State


@dataclass(frozen=True, slots=True)
class Observation:
    """A connector's state and its tasks' by number."""

    connector: State
    tasks: Mapping[int, State]

    def __str__(self) -> str:
        tasks = ", ".join(f"task {number} {state.value}" for number, state in sorted(self.tasks.items()))
        return f"connector {self.connector.value}, {tasks or 'no tasks'}"

    def states(self) -> set[State]:
        """Return every state that occurs."""
        return {self.connector, *self.tasks.values()}

    def is_in(self, wanted: Collection[State], *, tasks: bool) -> bool:
        """Whether the connector is in one of these states, and with ``tasks`` every task too.

        A connector that is to run has tasks, so RUNNING without any is not there yet.
        """
        if self.connector not in wanted:
            return False
        if not tasks:
            return True
        if self.connector is State.RUNNING and not self.tasks:
            return False
        return all(state in wanted for state in self.tasks.values())
