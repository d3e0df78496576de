"""What state a connector is in, seen from outside its driver. Pure.

A driver rewrites its connector's status record every few seconds. A record that says RUNNING and is older than
``sluiceway.heartbeat.timeout.ms`` was written by a driver that is gone, so it is not believed. The age is the reader's clock
minus the writer's: clocks of the machines that run drivers must agree to within that timeout.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sluiceway.storage.model import State, Status, TargetState

_ACTIVE = frozenset({State.RUNNING, State.RESTARTING})
_HEARTBEAT = _ACTIVE | {State.FAILED}
_AT_REST = {TargetState.PAUSED: State.PAUSED, TargetState.STOPPED: State.STOPPED}


@dataclass(frozen=True, slots=True)
class Clock:
    """A moment and how old a heartbeat may be then, both in milliseconds."""

    now: int
    timeout: int

    def stale(self, status: Status) -> bool:
        """Whether a record is too old to speak for a living driver; one that never was in Kafka has no age."""
        return 0 < status.timestamp < self.now - self.timeout


def driver_lives(status: Status | None, clock: Clock) -> bool:
    """Whether a driver runs the connector, as far as its status record tells.

    Only states that drivers keep rewriting count: a driver that found its connector PAUSED or STOPPED may have ended at once.
    """
    return status is not None and status.state in _HEARTBEAT and not clock.stale(status)


def observe(target: TargetState, status: Status, tasks: Mapping[int, Status], clock: Clock) -> tuple[Status, dict[int, Status]]:
    """Return the statuses to report for what the status topic says.

    A connector that nobody runs is in the state that its target state asks for, and UNASSIGNED if it should run; a
    failure stays visible until somebody restarts or stops the connector. No task of a dead driver is RUNNING.
    """
    stale = clock.stale(status)
    state = _connector_state(target, status.state, stale)
    if state is State.STOPPED:
        return _in_state(status, state), {}
    told = {number: _task_status(task, state, stale) for number, task in tasks.items()}
    return _in_state(status, state), told


def _connector_state(target: TargetState, recorded: State, stale: bool) -> State:
    if recorded is State.FAILED or (recorded in _ACTIVE and not stale):
        return recorded
    if target is not TargetState.STARTED:
        return _AT_REST[target]
    # Resumed a moment ago: until its driver had time to start, the last word stands.
    return State.UNASSIGNED if stale else recorded


def _task_status(task: Status, connector: State, stale: bool) -> Status:
    if not stale or task.state is State.FAILED:
        return task
    if connector is State.PAUSED:
        return _in_state(task, State.PAUSED) if task.state in _ACTIVE else task
    return _in_state(task, State.UNASSIGNED)


def _in_state(status: Status, state: State) -> Status:
    if status.state is state:
        return status
    return replace(status, state=state, trace=None, version=None if state is State.UNASSIGNED else status.version)
