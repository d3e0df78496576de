"""Keeps a connector at rest that has moved to another cluster: two that ran it would write its records twice. No I/O."""

from __future__ import annotations

from collections.abc import Mapping

from sluiceway.config.connector import MOVED, MOVING
from sluiceway.errors import ConflictError
from sluiceway.storage.model import ConnectorEntry


def moved_to(entry: ConnectorEntry | None) -> str | None:
    """Return the REST API of the cluster that a connector has moved to, None if it has not moved."""
    return (entry.config or {}).get(MOVED) or None if entry is not None else None


def refuse_moved(name: str, entry: ConnectorEntry | None) -> None:
    """Raise ConflictError for a connector that has moved."""
    if there := moved_to(entry):
        raise ConflictError(
            f"Connector {name} has moved to {there}. Move it back with 'sluiceway migrate --execute', or, if it does not run "
            f"there any more, remove {MOVED} from its config: 'sluiceway patch {name} --remove {MOVED}'."
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
