"""Kafka Connect's metrics of connectors, and its worker's of their tasks, from their statuses. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from sluiceway.config.connector import CONNECTOR_CLASS
from sluiceway.herder.overview import Overview
from sluiceway.metrics.beans import CONNECT, Bean, Value
from sluiceway.metrics.collector import worker_bean
from sluiceway.storage.model import State

_COUNTED = (State.RUNNING, State.PAUSED, State.FAILED, State.UNASSIGNED, State.RESTARTING)


def connector_beans(overview: Overview, names: Iterable[str]) -> list[Bean]:
    """Return the metrics of those of these connectors that exist."""
    return [bean for name in names if overview.state.entry(name) is not None for bean in _of_connector(overview, name)]


def with_worker(beans: list[Bean], overview: Overview, names: Iterable[str]) -> list[Bean]:
    """Return the metrics of processes together with those of these connectors, and of the worker or cluster that runs them."""
    connectors = connector_beans(overview, names)
    numbers = [bean.values.get("connector-total-task-count") for bean in connectors]
    counts = [number for number in numbers if isinstance(number, float)]
    return [*connectors, worker_bean(beans, len(counts), int(sum(counts))), *beans]


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
    return [Bean(CONNECT, "connector-metrics", tags, described), Bean(CONNECT, "connect-worker-metrics", tags, counts)]
