"""Reads the connector config that a DAG passes to an operator: a dict, or the path of a file on the worker."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sluiceway.config.connector import CONNECTOR_CLASS, NAME
from sluiceway.config.connector_files import read_connectors
from sluiceway.discovery import connector_class, is_sink
from sluiceway.errors import ConfigError, NotFoundError
from sluiceway.provider.compat import AirflowException


def named_config(connector: str, config: Mapping[str, str] | str | None) -> dict[str, str] | None:
    """Return a connector's config including its name; None if the DAG passes none.

    Args:
        connector: the connector's name, or "". Overrides the name in the config, and selects one of several in a file.
        config: the config, or the path of a JSON, YAML or .properties file.

    Raises:
        AirflowException: the file cannot be read, or ``connector`` does not select exactly one connector.
    """
    if config is None:
        return None
    if isinstance(config, str):
        try:
            found = read_connectors(Path(config))
        except ConfigError as error:
            raise AirflowException(str(error)) from error
        selected = [each for each in found if each.name == connector] if len(found) > 1 else found
        if len(selected) != 1:
            names = ", ".join(each.name for each in found)
            raise AirflowException(f"{config} holds {len(found)} connectors ({names}). Select one with the argument 'connector'.")
        config = selected[0].config
    return {**config, NAME: connector or config[NAME]}


def check_kind(connector: str, config: Mapping[str, str], sink: bool | None, operator: str) -> None:
    """Raise AirflowException if a connector is not of the kind that an operator runs.

    Args:
        connector: the connector's name.
        config: its config.
        sink: True if the operator runs sinks only, False for sources only, None for both.
        operator: the operator's class name, for the message.
    """
    if sink is None:
        return
    try:
        kind = is_sink(connector_class(config.get(CONNECTOR_CLASS, "")))
    except (ConfigError, NotFoundError) as error:
        raise AirflowException(f"Connector {connector}: {error}") from error
    if kind != sink:
        what, other = ("sink", "SinkConnectorOperator") if kind else ("source", "SourceConnectorOperator")
        raise AirflowException(
            f"Connector {connector} ({config.get(CONNECTOR_CLASS)}) is a {what}: use {other} for it, not {operator}."
        )
