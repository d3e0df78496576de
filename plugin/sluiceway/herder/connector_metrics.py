"""Kafka Connect's metrics of connectors, and its worker's of their tasks, from their statuses. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from sluiceway.config.connector import CONNECTOR_CLASS
from sluiceway.herder.overview import Overview
from sluiceway.metrics.beans import CONNECT, OWN, Bean, Value
from sluiceway.metrics.collector import worker_bean
from sluiceway.storage.model import State, TargetState

_TASK = "connector-task-metrics"
_RUN_BY_A_DRIVER = (State.RUNNING, State.RESTARTING)
_COUNTED = (State.RUNNING, State.PAUSED, State.FAILED, State.UNASSIGNED, State.RESTARTING)


def connector_beans(overview: Overview, names: Iterable[str]) -> list[Bean]:
    """Return the metrics of those of these connectors that exist."""
    return [bean for name in names if overview.state.entry(name) is not None for bean in _of_connector(overview, name)]


def with_worker(beans: list[Bean], overview: Overview, names: Iterable[str]) -> list[Bean]:
    """Return the metrics of processes together with those of these connectors, and of the worker or cluster that runs them.

    They include the statuses of tasks that no process reports, such as FAILED ones.
    """
    names = list(names)
    connectors = connector_beans(overview, names)
    numbers = [bean.values.get("connector-total-task-count") for bean in connectors]
    counts = [number for number in numbers if isinstance(number, float)]
    reported = {(bean.tags["connector"], bean.tags["task"]) for bean in beans if (bean.domain, bean.type) == (CONNECT, _TASK)}
    silent = [bean for bean in task_beans(overview, names) if (bean.tags["connector"], bean.tags["task"]) not in reported]
    return [*connectors, worker_bean(beans, len(counts), int(sum(counts))), *silent, *beans]


def task_beans(overview: Overview, names: Iterable[str]) -> list[Bean]:
    """Return the statuses of the tasks of those of these connectors that exist."""
    return [
        Bean(CONNECT, _TASK, {"connector": name, "task": str(number)}, {"status": task.state.value.lower()})
        for name in names
        if overview.state.entry(name) is not None
        for number, task in overview.status(name).tasks.items()
    ]


def _of_connector(overview: Overview, name: str) -> list[Bean]:
    status = overview.status(name)
    config = overview.entry(name, name).config or {}
    tags = {"connector": name}
    described: dict[str, Value] = {
        "status": status.connector.state.value.lower(),
        "connector-type": status.type,
        "connector-class": config.get(CONNECTOR_CLASS, ""),
        "connector-version": status.connector.version or "",
    }
    states = Counter(task.state for task in status.tasks.values())
    counts: dict[str, Value] = {f"connector-{state.value.lower()}-task-count": float(states[state]) for state in _COUNTED}
    counts |= {"connector-total-task-count": float(len(status.tasks)), "connector-destroyed-task-count": 0.0}
    beans = [Bean(CONNECT, "connector-metrics", tags, described), Bean(CONNECT, "connect-worker-metrics", tags, counts)]
    age = _heartbeat_age(overview, name)
    return beans if age is None else [*beans, Bean(OWN, "connector-metrics", tags, {"heartbeat-age-ms": age})]


def _heartbeat_age(overview: Overview, name: str) -> float | None:
    """Return the milliseconds since the last heartbeat for a connector; None if no driver needs to send any."""
    recorded = overview.recorded.get(name)
    status = recorded.connector if recorded is not None else None
    if status is None or status.timestamp <= 0 or status.state not in _RUN_BY_A_DRIVER:
        return None
    if overview.entry(name, name).target_state is not TargetState.STARTED:
        return None
    return float(max(0, overview.clock.now - status.timestamp))
