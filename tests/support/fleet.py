"""Sixty-three connectors: each state of a connector with each state of its DAG, and what the page must say of them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sluiceway.provider.ui.dag_facts import DagFacts, RunFacts
from sluiceway.storage.model import State, TargetState
from support.dashboard import SINK, SOURCE, MemoryConnectors

EVERY = "*/10 * * * *"
_FAR = 4e9  # a moment that is never overdue
_TRACE = (
    "org.apache.kafka.connect.errors.ConnectException: The disk is full\n\tat java.base/java.lang.Thread.run(Thread.java:1583)"
)


@dataclass(frozen=True)
class Connector:
    """The statuses of a connector, and its target state."""

    state: State
    tasks: Sequence[State] = ()
    target: TargetState | None = None


class Dag(NamedTuple):
    """What Airflow says of a DAG, and what the column of schedules says of it."""

    facts: DagFacts | None
    text: str


def dags() -> dict[str, Dag]:
    """Return the states of a DAG as of now."""
    now = time.time()
    ok, failed = RunFacts("success", now - 600, "r1"), RunFacts("failed", now - 600, "r1")
    new, old = RunFacts("running", now + 3600, "r2"), RunFacts("running", now - 3600, "r2")  # new for as long as a test takes
    return {
        "idle": Dag(DagFacts(EVERY, _FAR, last=ok), "last run OK"),
        "broken": Dag(DagFacts(EVERY, _FAR, last=failed), "last run FAILED"),
        "begun": Dag(DagFacts(EVERY, _FAR, last=ok, active=new), "run running since"),
        "stuck": Dag(DagFacts(EVERY, _FAR, last=ok, active=old), "run running since"),
        "gone": Dag(DagFacts(EVERY, _FAR, gone=True, last=ok), "is gone"),
        "faulty": Dag(DagFacts(EVERY, _FAR, import_error=True, last=ok), "has an import error"),
        "unknown": Dag(None, "DAG "),
    }


CONNECTORS = {
    "unassigned": Connector(State.UNASSIGNED, [State.UNASSIGNED]),
    "lost": Connector(State.UNASSIGNED, [State.FAILED, State.UNASSIGNED]),
    "running": Connector(State.RUNNING, [State.RUNNING] * 2),
    "limping": Connector(State.RUNNING, [State.RUNNING, State.FAILED]),
    "restarting": Connector(State.RESTARTING, [State.RESTARTING]),
    "failed": Connector(State.FAILED),
    "paused": Connector(State.PAUSED, [State.PAUSED], TargetState.PAUSED),
    "halted": Connector(State.PAUSED, [State.PAUSED, State.FAILED], TargetState.PAUSED),
    "stopped": Connector(State.STOPPED, target=TargetState.STOPPED),
}

BADGES: dict[str, tuple[str, ...]] = {
    #              idle    broken             begun       stuck         gone          faulty        unknown
    "unassigned": ("Idle", "Last run failed", "Starting", "Unassigned", "Unassigned", "Unassigned", "Unassigned"),
    "lost": ("Failed",) * 7,
    "running": ("Running",) * 7,
    "limping": ("Failed tasks",) * 7,
    "restarting": ("Restarting",) * 7,
    "failed": ("Failed",) * 7,
    "paused": ("Paused",) * 7,
    "halted": ("Paused, failed tasks",) * 7,
    "stopped": ("Stopped",) * 7,
}
"""The text of the badge, by the connector's state and the DAG's."""


class Row(NamedTuple):
    """What the page must say of a connector."""

    badge: str
    schedule: str


def fill(connectors: MemoryConnectors) -> dict[str, Row]:
    """Add the connectors, and return what the page must say of each. Every second one is a sink of the source before it."""
    rows, kinds = {}, dags()
    for state, badges in BADGES.items():
        source = ""
        for (kind, dag), badge in zip(kinds.items(), badges, strict=True):
            name, own = f"{state}-{kind}", CONNECTORS[state]
            topics = {"topics": source} if source else {}
            connectors.add(
                name, SINK if source else SOURCE, own.state, tasks=own.tasks, target=own.target, trace=_TRACE, **topics
            )
            source = "" if source else name
            rows[name] = Row(badge, dag.text)
            if dag.facts is not None:
                connectors.airflow.facts[name] = dag.facts
    return rows
