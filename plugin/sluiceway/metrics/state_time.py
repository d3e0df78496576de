"""The time that a task has been in each state. No I/O."""

from __future__ import annotations

from sluiceway.storage.model import State


class StateTime:
    """A task's state, and the time that it has spent in each. ``now`` is monotonic seconds throughout."""

    def __init__(self, now: float) -> None:
        self.state = State.UNASSIGNED
        self._began = self._since = now
        self._seconds: dict[State, float] = {}

    def enter(self, state: State, now: float) -> None:
        """Record that the task is in ``state`` from now on."""
        self._seconds[self.state] = self.seconds(self.state, now)
        self.state, self._since = state, now

    def seconds(self, state: State, now: float) -> float:
        """Return how long the task has been in ``state`` since its start."""
        return self._seconds.get(state, 0.0) + (now - self._since if state is self.state else 0.0)

    def ratio(self, state: State, now: float) -> float:
        """Return the share of the time since the task's start in which it was in ``state``."""
        return self.seconds(state, now) / (now - self._began) if now > self._began else 0.0

    def all(self, now: float) -> dict[State, float]:
        """Return the seconds in each state in which the task has been."""
        return {state: self.seconds(state, now) for state in {*self._seconds, self.state}}
