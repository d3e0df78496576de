"""Decides which of the numbered applications of a name runs each connector of that name. No I/O.

A connector stays where it is, unless the driver of its application has died and nothing has replaced it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping

from sluiceway.config.application import Applications, number_of, numbered
from sluiceway.config.connector import TASKS_MAX
from sluiceway.herder.states import Clock, driver_is_alive
from sluiceway.java.numbers import whole_number
from sluiceway.storage.model import ClusterState, ConnectorEntry, ConnectorStatuses, State, TargetState

_ACTIVE = (State.RUNNING, State.RESTARTING)
_GONE_FACTOR = 2
"""After this multiple of the heartbeat timeout an application is gone: its Airflow task has not reported its driver's death."""


def members(state: ClusterState, applications: Applications, name: str) -> list[ConnectorEntry]:
    """Return the connectors that belong to one of the applications of a name, sorted by name."""
    found = (entry for entry in state.connectors.values() if entry.config is not None)
    return sorted(
        (entry for entry in found if applications.membership(entry.config or {}).application == name),
        key=lambda entry: entry.name,
    )


def plan_placement(entries: Collection[ConnectorEntry], name: str, max_tasks: int, gone: Collection[str]) -> dict[str, str]:
    """Return the application of each connector that has none yet, or whose application is gone.

    Each goes to the application with the fewest tasks that has room for it, else to another one.

    Args:
        entries: the connectors of a name.
        name: the name of the first application.
        max_tasks: the number of tasks that an application has room for. A connector with more tasks has one alone.
        gone: applications that run nothing any more.
    """
    load: dict[int, int] = defaultdict(int)
    homeless = []
    for entry in entries:
        number = number_of(entry.placed, name) if entry.placed is not None and entry.placed not in gone else None
        if number is None:
            homeless.append(entry)
        else:
            load[number] += _tasks(entry)
    closed = {number_of(each, name) for each in gone}
    plan = {}
    for entry in homeless:
        tasks = _tasks(entry)
        with_room = [number for number, has in load.items() if has + tasks <= max_tasks]
        unused = next(number for number in range(1, len(load) + len(closed) + 2) if number not in load and number not in closed)
        number = min(with_room, key=lambda each: (load[each], each), default=unused)
        load[number] += tasks
        plan[entry.name] = numbered(name, number)
    return plan


def alive(entries: Collection[ConnectorEntry], statuses: Mapping[str, ConnectorStatuses], clock: Clock) -> set[str]:
    """Return the applications of these connectors whose driver sends heartbeats."""
    return {
        entry.application
        for entry in entries
        if entry.application is not None and driver_is_alive(statuses.get(entry.name, ConnectorStatuses()).connector, clock)
    }


def gone(entries: Collection[ConnectorEntry], statuses: Mapping[str, ConnectorStatuses], clock: Clock) -> set[str]:
    """Return the applications whose driver has died long ago, and whose Airflow task has not said that it starts another.

    A driver that drains leaves no connector RUNNING, so the application of a paused DAG is not gone.
    """
    later = Clock(clock.now, _GONE_FACTOR * clock.timeout)
    left = set()
    for entry in entries:
        status = statuses.get(entry.name, ConnectorStatuses()).connector
        started = entry.target_state is TargetState.STARTED and entry.placed is not None
        if started and status is not None and status.state in _ACTIVE and later.stale(status):
            left.add(entry.application or "")
    return left - alive(entries, statuses, clock)


def _tasks(entry: ConnectorEntry) -> int:
    """Return the number of a connector's tasks, as far as it is known."""
    most = whole_number((entry.config or {}).get(TASKS_MAX, "1").strip()) or 1
    return max(len(entry.task_configs) if entry.applied_config is not None else most, 1)
