"""Decides whether a source can be watched for changes. No I/O."""

from __future__ import annotations

from collections.abc import Mapping

from sluiceway.api import Connector, SourceConnector
from sluiceway.config.connector import CONNECTOR_CLASS
from sluiceway.config.schedules import ON_CHANGE, SCHEDULE
from sluiceway.config.variables import references
from sluiceway.errors import ConfigError

_RUN = "run"
"""The path of references to the DAG run, as in ``${airflow:run:ds}``."""


def check_watch(connector: type[Connector], config: Mapping[str, str]) -> None:
    """Raise ConfigError for ``airflow.schedule=on-change`` of a connector that cannot be watched."""
    if config.get(SCHEDULE) != ON_CHANGE or not issubclass(connector, SourceConnector):
        return
    why = connector.watch_refusal(config)
    if not why and (key := _key_of_run(config)):
        why = f"{key} refers to the DAG run, and there is none before the change"
    if why:
        raise ConfigError(SCHEDULE, ON_CHANGE, f"not possible with {config.get(CONNECTOR_CLASS)}: {why}")


def _key_of_run(config: Mapping[str, str]) -> str | None:
    return next((key for key, value in config.items() if any(each.path == _RUN for each in references({key: value}))), None)
