"""Protects configs that Airflow tasks set: a task stores its config at each try, which would undo any other change. No I/O."""

from __future__ import annotations

from collections.abc import Mapping

from sluiceway.config.connector import CONFIG_TASK, DAG
from sluiceway.errors import BadRequestError, ConflictError
from sluiceway.storage.model import ConnectorEntry


def refuse_change(name: str, entry: ConnectorEntry | None, config: Mapping[str, str]) -> None:
    """Raise ConflictError if a change is not the task's that sets the config, and BadRequestError if it pretends to be.

    Args:
        name: the connector's name.
        entry: the connector as it is; None for a new one.
        config: the config after the change.
    """
    before = (entry.config if entry is not None else None) or {}
    if dict(before) == dict(config):
        return
    if task := before.get(CONFIG_TASK):
        raise ConflictError(
            f"Connector {name}: its config is set by DAG {before.get(DAG)}, task {task}, whose next try would undo this change. "
            "Change it in the DAG's file. If that DAG is gone, delete the connector, which keeps its offsets, and create it "
            "again."
        )
    if config.get(CONFIG_TASK):
        raise BadRequestError(f"Connector {name}: only an Airflow task may set {CONFIG_TASK}. Remove it from the config.")
