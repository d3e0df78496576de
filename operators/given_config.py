"""Reads the connector config that a DAG passes to an operator: a dict, or the path of a file on the worker."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from airflow.sdk import XComArg

from sluiceway.config.connector import CONNECTOR_CLASS, NAME
from sluiceway.config.connector_files import read_connectors, to_text
from sluiceway.config.schedules import LONG_RUNNING, MODE
from sluiceway.discovery import connector_class, is_sink
from sluiceway.errors import ConfigError, NotFoundError
from sluiceway.herder.plugin_classes import described
from sluiceway.provider.compat import AirflowFailException

_SCALARS = (str, int, float, bool, type(None))
_NO_NAME = "A connector operator needs the connector's name: as 'connector', or as 'name' in its config."


def named_config(connector: str | None, config: Mapping[str, Any] | str | None) -> dict[str, str] | None:
    """Return a connector's config including its name; None if the DAG passes none. Call it for rendered fields.

    Args:
        connector: the connector's name, or "". Overrides the name in the config, and selects one of several in a file.
        config: the config, or the path of a JSON, YAML or .properties file. Numbers and booleans become text, as in JSON; a key
            whose value is None is left out.

    Raises:
        AirflowFailException: the file cannot be read, ``connector`` does not select exactly one connector, a value is no scalar,
            or there is no name.
    """
    if config is None and connector:
        return None
    if isinstance(config, str):
        try:
            found = read_connectors(Path(config))
        except ConfigError as error:
            raise AirflowFailException(str(error)) from error
        selected = [each for each in found if each.name == connector] if len(found) > 1 else found
        if len(selected) != 1:
            names = ", ".join(each.name for each in found)
            raise AirflowFailException(
                f"{config} holds {len(found)} connectors ({names}). Select one with the argument 'connector'."
            )
        config = selected[0].config
    config = {} if config is None else config
    if not isinstance(config, Mapping):
        raise AirflowFailException(f"'config' must be a dict or the path of a file, not {type(config).__name__}.")
    if problem := _unfit_value(config, _SCALARS):
        raise AirflowFailException(problem)
    texts = {str(key): to_text(value) for key, value in config.items() if value is not None}
    if not (name := connector or texts.get(NAME)):
        raise AirflowFailException(_NO_NAME)
    return {**texts, NAME: name}


def check_given(connector: object, config: object) -> None:
    """Raise ValueError for a mistake that is seen when the DAG is parsed, before Airflow renders the fields."""
    if isinstance(config, Mapping) and (problem := _unfit_value(config, (*_SCALARS, XComArg))):
        raise ValueError(problem)
    if (config is None or isinstance(config, Mapping)) and not given_name(connector, config):
        raise ValueError(_NO_NAME)


def given_name(connector: object, config: object) -> Any:
    """Return what is to be rendered to the connector's name: ``connector``, else the config's name, else None."""
    return connector or (config.get(NAME) if isinstance(config, Mapping) else None)


def given_mode(mode: str | None, config: object) -> str | None:
    """Return the mode in which the connector will run; None if only the run knows its config."""
    return mode or (str(config.get(MODE, LONG_RUNNING)) if isinstance(config, Mapping) else None)


def _unfit_value(config: Mapping[Any, Any], kinds: tuple[type, ...]) -> str | None:
    """Return what is wrong with the first value of another type; without the value, which may be a secret."""
    for key, value in config.items():
        if not isinstance(value, kinds):
            return f"The value of {key!r} in the config must be text, a number, or a boolean, not {type(value).__name__}."
    return None


def check_kind(connector: str, config: Mapping[str, str], sink: bool | None, operator: str) -> None:
    """Raise AirflowFailException if a connector is not of the kind that an operator runs.

    Args:
        connector: the connector's name.
        config: its config.
        sink: True if the operator runs sinks only, False for sources only, None for both.
        operator: the operator's class name, for the message.
    """
    if not config.get(CONNECTOR_CLASS):
        raise AirflowFailException(f"Connector {connector}: its config has no {CONNECTOR_CLASS}, which names the plugin.")
    if sink is None:
        return
    try:
        kind = is_sink(connector_class(config.get(CONNECTOR_CLASS, "")))
    except (ConfigError, NotFoundError) as error:
        raise AirflowFailException(f"Connector {connector}: {described(error)}") from error
    if kind != sink:
        what, other = ("sink", "SinkConnectorOperator") if kind else ("source", "SourceConnectorOperator")
        raise AirflowFailException(
            f"Connector {connector} ({config.get(CONNECTOR_CLASS)}) is a {what}: use {other} for it, not {operator}."
        )
