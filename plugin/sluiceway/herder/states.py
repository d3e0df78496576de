"""Derives the state of a connector from its status records and heartbeats. No I/O.

Drivers and tasks renew their statuses every few seconds, by heartbeats or by writing them again. A RUNNING status that has not
been renewed for ``sluiceway.heartbeat.timeout.ms`` comes from a process that no longer runs, so it is not reported. The age is
the difference of the reader's and the writer's clock, which must agree to within that timeout.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone

from sluiceway.storage.model import State, Status, TargetState

_ACTIVE = frozenset({State.RUNNING, State.RESTARTING})
_HEARTBEAT = _ACTIVE | {State.FAILED}
_AT_REST = {TargetState.PAUSED: State.PAUSED, TargetState.STOPPED: State.STOPPED}


@dataclass(frozen=True, slots=True)
class Clock:
    """The current time and the maximum age of a heartbeat, both in milliseconds."""

    now: int
    timeout: int

    def stale(self, status: Status) -> bool:
        """Return whether a record is too old to come from a running driver. A record that was never in Kafka has no age."""
        return 0 < status.timestamp < self.now - self.timeout


def driver_is_alive(status: Status | None, clock: Clock) -> bool:
    """Return whether a driver runs the connector, according to its status record.

    Only states that a running driver renews count: the driver of a PAUSED or STOPPED connector may have ended.
    """
    return status is not None and status.state in _HEARTBEAT and not clock.stale(status)


def unchanged_between(statuses: Iterable[Status], clock: Clock) -> tuple[float, float]:
    """Return the times between which ``observe`` returns the same for these records: after the first, up to the second.

    It changes when a record becomes stale.
    """
    became_stale, becomes_stale = -math.inf, math.inf
    for status in statuses:
        last_fresh = status.timestamp + clock.timeout
        if clock.stale(status):
            became_stale = max(became_stale, last_fresh)
        elif status.timestamp > 0:
            becomes_stale = min(becomes_stale, last_fresh)
    return became_stale, becomes_stale


def observe(target: TargetState, status: Status, tasks: Mapping[int, Status], clock: Clock) -> tuple[Status, dict[int, Status]]:
    """Return the connector's and tasks' statuses to report for those on the status topic.

    A connector without a driver is in its target state, or UNASSIGNED if it should run. A failure stays visible until the
    connector is restarted or stopped. Tasks without a driver are not reported as RUNNING, nor are those that have sent no
    heartbeat or belong to an earlier driver.
    """
    stale = clock.stale(status)
    state = _connector_state(target, status.state, stale)
    if state is State.STOPPED:
        return _in_state(status, state), {}
    if stale:
        return _in_state(status, state), {number: _without_driver(task, state) for number, task in tasks.items()}
    return _in_state(status, state), {number: _with_driver(task, status, clock) for number, task in tasks.items()}


def _connector_state(target: TargetState, recorded: State, stale: bool) -> State:
    if recorded is State.FAILED or (recorded in _ACTIVE and not stale):
        return recorded
    if target is not TargetState.STARTED:
        return _AT_REST[target]
    # Just resumed: keep the recorded state until the driver has had time to start.
    return State.UNASSIGNED if stale else recorded


def _with_driver(task: Status, connector: Status, clock: Clock) -> Status:
    if task.state is not State.RUNNING:
        return task
    if task.generation < connector.generation and task.worker_id != connector.worker_id:  # a dead driver's task
        return _in_state(task, State.UNASSIGNED)
    if clock.stale(task):
        heard = datetime.fromtimestamp(task.timestamp / 1000, timezone.utc).isoformat(timespec="seconds")
        return replace(
            _in_state(task, State.UNASSIGNED),
            trace=f"The task has sent no heartbeat since {heard}: its process hangs, or its host is down or cut off. The driver "
            "starts it again.",
        )
    return task


def _without_driver(task: Status, connector: State) -> Status:
    if task.state is State.FAILED:
        return task
    if connector is State.PAUSED:
        return _in_state(task, State.PAUSED) if task.state in _ACTIVE else task
    return _in_state(task, State.UNASSIGNED)


def _in_state(status: Status, state: State) -> Status:
    if status.state is state:
        return status
    return replace(status, state=state, trace=None, version=None if state is State.UNASSIGNED else status.version)
