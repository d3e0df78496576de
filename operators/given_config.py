"""The config that a DAG gives an operator: a dict, or a file on the worker."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from airflow.exceptions import AirflowException

from sluiceway.config.connector import CONNECTOR_CLASS, NAME
from sluiceway.config.connector_files import read_connectors
from sluiceway.discovery import connector_class, is_sink
from sluiceway.errors import ConfigError, NotFoundError


def named_config(connector: str, config: Mapping[str, str] | str | None) -> dict[str, str] | None:
    """Return a connector's config with its name in it; None if the DAG gives none.

    ``connector`` wins over the name in the config, and chooses one of several in a file. Raises AirflowException.
    """
    if config is None:
        return None
    if isinstance(config, str):
        try:
            found = read_connectors(Path(config))
        except ConfigError as error:
            raise AirflowException(str(error)) from error
        chosen = [each for each in found if each.name == connector] if len(found) > 1 else found
        if len(chosen) != 1:
            names = ", ".join(each.name for each in found)
            raise AirflowException(f"{config} holds {len(found)} connectors ({names}): say which one with 'connector'.")
        config = chosen[0].config
    return {**config, NAME: connector or config[NAME]}


def check_kind(connector: str, config: Mapping[str, str], sink: bool | None, operator: str) -> None:
    """Raise AirflowException if an operator is for sinks (True) or sources (False) only and the connector is not one."""
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
