"""Decides the next step of moving a connector from one Connect cluster to another. No I/O.

Nothing but the clusters records how far a move is, so that any machine can continue it. While a connector moves, its config on
one of them, the Sluiceway, has the key ``sluiceway.migrate.state``: the state that the target gives it in the end. The key is
set before anything stops, and removed at the end; neither restarts the connector there, and it keeps a driver ready for it.
Kafka Connect's config stays as it is, because each change restarts the tasks. A Sluiceway that was the source keeps another
key, ``sluiceway.moved.to``, so that nothing starts the connector there.
"""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sluiceway.config.connector import MOVING, without_marks
from sluiceway.errors import ConnectError

_VERSION = re.compile(r"(\d+)\.(\d+)[^-]*(-c)?")

RUNNING, PAUSED, STOPPED, FAILED, CHANGING = "RUNNING", "PAUSED", "STOPPED", "FAILED", "CHANGING"
UNASSIGNED = "UNASSIGNED"  # of a task that has not started, or has ended


class MigrationError(ConnectError):
    """A connector cannot be moved as things are. The message says what to do."""


class Step(enum.Enum):
    """A step of a move. Each can be repeated."""

    PREPARE = "stopped on the target with its config"
    STOP = "stopped on the source"
    COPY_OFFSETS = "offsets copied"
    START = "state set on the target"
    LEAVE = "left stopped on the source"
    DONE = "moved"


@dataclass(frozen=True)
class ConnectorView:
    """A connector on one cluster: its config without marks, the mark of a move that has not ended, and its state."""

    config: Mapping[str, str]
    mark: str | None
    state: str
    """RUNNING if it and all its tasks run, PAUSED, STOPPED, FAILED if it or a task has failed, or CHANGING."""

    @classmethod
    def of(cls, config: Mapping[str, str], status: Mapping[str, Any]) -> ConnectorView:
        """Return the view for REST responses. An empty status is that of a connector which has none yet."""
        return cls(without_marks(config), config.get(MOVING), _state(status))

    @property
    def target_state(self) -> str:
        """The state that users have requested."""
        return self.state if self.state in (PAUSED, STOPPED) else RUNNING


@dataclass(frozen=True)
class Tasks:
    """A connector's tasks on one cluster."""

    numbers: frozenset[int]
    starting: bool
    """Whether the connector runs, and one of its tasks, or the first, has not started yet."""

    @classmethod
    def of(cls, status: Mapping[str, Any], configured: Collection[int]) -> Tasks:
        """Return the tasks for a REST API's status, which is empty if there is none yet, and the numbers of those configured."""
        runs = status.get("connector", {}).get("state", RUNNING) == RUNNING
        states: dict[int, str] = {each["id"]: each["state"] for each in status.get("tasks", ())}
        numbers = frozenset({*states, *configured})
        started = bool(numbers) and all(states.get(each, UNASSIGNED) != UNASSIGNED for each in numbers)
        return cls(numbers, starting=runs and not started)


def next_step(name: str, source: ConnectorView | None, target: ConnectorView | None, same_offsets: Callable[[], bool]) -> Step:
    """Return the next step.

    Args:
        name: the connector, for messages.
        source, target: the connector on both clusters; None if it does not exist there.
        same_offsets: returns whether the offsets are equal. Called only if the connector is stopped on both.

    Raises MigrationError if the connector is not in a state that a move leads to.
    """
    if source is None:
        if target is None or target.mark is not None:
            raise MigrationError(f"Connector {name} does not exist on the source.")
        return Step.DONE
    if target is None:
        return Step.PREPARE
    mark = mark_of(source, target)
    if mark is None:
        return _before(name, source, target, same_offsets)
    if target.state not in (STOPPED, CHANGING) and source.state != STOPPED:
        raise MigrationError(
            f"Connector {name} is {target.state} on the target, although its move has not reached that step. Stop it there."
        )
    if target.state == STOPPED or source.state != STOPPED:
        return _until_started(source, target, mark, same_offsets)
    return Step.LEAVE if has_reached(target.state, mark) else Step.START


def mark_of(source: ConnectorView, target: ConnectorView | None) -> str | None:
    """Return the state that the connector gets in the end, if it moves: one of the clusters has it."""
    return (target and target.mark) or source.mark


def final_state(source: ConnectorView, target: ConnectorView | None) -> str:
    """Return the state that the connector gets on the target: that before the move.

    One that had FAILED is started, as its target state says, and may fail again: see ``has_reached``.
    """
    if source.state in (RUNNING, PAUSED, FAILED):
        return source.state
    return mark_of(source, target) or source.target_state


def cause_of(status: Mapping[str, Any]) -> str:
    """Return the first line of the first trace in a REST API's status of a connector; empty without one."""
    parts = (status.get("connector", {}), *status.get("tasks", ()))
    return next(filter(None, (str(part.get("trace", "")).partition("\n")[0] for part in parts)), "")


def has_reached(state: str, wanted: str) -> bool:
    """Return whether a connector is in the state that its move gives it. The cause of a failure may be gone on the target."""
    return state == wanted or (wanted == FAILED and state == RUNNING)


def _before(name: str, source: ConnectorView, target: ConnectorView, same_offsets: Callable[[], bool]) -> Step:
    """Return the step of a connector that does not move yet, or does not any more."""
    if source.state == STOPPED:
        return _of_stopped(name, source, target, same_offsets)
    if target.state == STOPPED:
        return Step.PREPARE
    raise MigrationError(f"Connector {name} is {source.state} on the source and {target.state} on the target. Stop one of them.")


def _until_started(source: ConnectorView, target: ConnectorView, mark: str, same_offsets: Callable[[], bool]) -> Step:
    if target.config != source.config or mark != final_state(source, target):
        return Step.PREPARE
    if source.state != STOPPED:
        return Step.STOP
    if not same_offsets():
        return Step.COPY_OFFSETS
    return Step.LEAVE if mark == STOPPED else Step.START


def _of_stopped(name: str, source: ConnectorView, target: ConnectorView, same_offsets: Callable[[], bool]) -> Step:
    if target.state != STOPPED or (target.config == source.config and same_offsets()):
        return Step.DONE
    raise MigrationError(
        f"Connector {name} is STOPPED on both clusters, with other offsets or another config, so nothing shows which is newer. "
        "Delete the older one, or resume the newer one."
    )


def normalized(offsets: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return offsets by partition, comparable whatever the order of keys. Removed ones (None) are left out."""
    return {json.dumps(each["partition"], sort_keys=True): each["offset"] for each in offsets if each["offset"] is not None}


def offset_edits(source: Sequence[Mapping[str, Any]], target: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the changes that make the target's offsets those of the source."""
    wanted, found = normalized(source), normalized(target)
    edits = [
        {"partition": each["partition"], "offset": each["offset"]}
        for each in source
        if each["offset"] is not None and found.get(_key(each)) != each["offset"]
    ]
    return edits + [
        {"partition": each["partition"], "offset": None} for each in target if _key(each) in found.keys() - wanted.keys()
    ]


def too_old(version: str, needed: tuple[int, int]) -> bool:
    """Return whether a version such as ``3.4.1`` or ``7.5.0-ccs`` is older than needed. Unknown forms are not.

    The major versions of Confluent's (``7.5.0-ccs``) are four higher than Apache Kafka's.
    """
    found = _VERSION.match(version)
    if found is None:
        return False
    return (int(found[1]) - (4 if found[3] else 0), int(found[2])) < needed


def _key(each: Mapping[str, Any]) -> str:
    return next(iter(normalized([{**each, "offset": True}])))


def _state(status: Mapping[str, Any]) -> str:
    connector = status.get("connector", {}).get("state")
    tasks = {task["state"] for task in status.get("tasks", ())}
    if connector == STOPPED:
        return STOPPED if tasks <= {UNASSIGNED} else CHANGING  # a task is still storing its offsets
    if connector == PAUSED:
        return PAUSED
    states = {connector, *tasks}
    if FAILED in states:
        return FAILED
    return RUNNING if states == {RUNNING} else CHANGING
