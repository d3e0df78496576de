"""Keeps a connector at rest that has moved to another cluster: two that ran it would write its records twice. No I/O."""

from __future__ import annotations

from collections.abc import Mapping

from sluiceway.config.connector import MICRO_BATCH, MODE, MOVED, MOVING
from sluiceway.errors import ConflictError
from sluiceway.storage.model import ConnectorEntry, State, TargetState

_STARTED = (State.RUNNING.value, State.FAILED.value)


def moved_to(entry: ConnectorEntry | None) -> str | None:
    """Return the REST API of the cluster that a connector has moved to, None if it has not moved."""
    return (entry.config or {}).get(MOVED) or None if entry is not None else None


def needs_driver(entry: ConnectorEntry) -> bool:
    """Return whether a driver shall have a connector: to run it, or to be ready for one that a move will start."""
    return entry.target_state is TargetState.STARTED or is_moving(entry)


def is_moving(entry: ConnectorEntry) -> bool:
    """Return whether a connector is stopped here while it moves, and shall run in the end, not only by a schedule."""
    config = entry.config or {}
    wanted = config.get(MOVING) in _STARTED and config.get(MODE) != MICRO_BATCH
    return wanted and entry.target_state is TargetState.STOPPED


def refuse_moved(name: str, entry: ConnectorEntry | None) -> None:
    """Raise ConflictError for a connector that has moved."""
    if there := moved_to(entry):
        raise ConflictError(
            f"Connector {name} has moved to {there}. Move it back with 'sluiceway migrate --execute', or, if it does not run "
            f"there any more, remove {MOVED} from its config: 'sluiceway patch {name} --remove {MOVED}'."
        )


def rests_while_it_moves(entry: ConnectorEntry) -> bool:
    """Return whether a connector is stopped here by a move that has not ended. It may run, or have run last, elsewhere."""
    return bool((entry.config or {}).get(MOVING)) and entry.target_state is TargetState.STOPPED


def refuse_moving(name: str, entry: ConnectorEntry | None) -> None:
    """Raise ConflictError for a connector that is stopped here by a move that has not ended."""
    if entry is not None and rests_while_it_moves(entry):
        raise ConflictError(
            f"Connector {name} is being moved between two clusters, and its offsets here may be old. Run the same 'sluiceway "
            f"migrate --execute' again, which goes on. Or give the move up: resume it on the other cluster, and remove {MOVING} "
            f"from its config here: 'sluiceway patch {name} --remove {MOVING}'."
        )


def refuse_change(name: str, entry: ConnectorEntry | None, given: Mapping[str, str | None]) -> None:
    """Raise ConflictError if a change of a config would remove the mark of a connector that has moved without naming it.

    ``given`` is the new config, or the patch. It may name the mark, with an empty value to remove it, or be a move back.
    """
    if MOVED not in given and MOVING not in given:
        refuse_moved(name, entry)


def without_empty_mark(config: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return a config without an empty mark, which a change names to remove it."""
    return {key: value for key, value in config.items() if key != MOVED or value}
