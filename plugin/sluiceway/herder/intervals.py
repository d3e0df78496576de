"""Decides whether a connector can move the records of an interval only. No I/O."""

from __future__ import annotations

from collections.abc import Mapping

from sluiceway.api import Connector, SourceConnector
from sluiceway.config.intervals import EXACT, INTERVAL
from sluiceway.config.schedules import LONG_RUNNING, MICRO_BATCH, MODE
from sluiceway.config.variables import references
from sluiceway.errors import ConfigError

_RUN = "run"
"""The path of references to the DAG run, as in ``${airflow:run:ds}``."""


def interval_refusal(connector: type[Connector], config: Mapping[str, str]) -> str:
    """Return why a connector cannot move the records of an interval only; empty if it can.

    A source that has no time can if its config refers to the DAG run: its author bounds what it reads.
    """
    if not issubclass(connector, SourceConnector) or any(each.path == _RUN for each in references(config)):
        return ""
    return connector.interval_refusal(config)


def check_interval(connector: type[Connector], config: Mapping[str, str]) -> None:
    """Raise ConfigError if the config asks for exact intervals that the connector cannot have."""
    if config.get(INTERVAL) != EXACT:
        return
    if config.get(MODE, LONG_RUNNING) != MICRO_BATCH:
        raise ConfigError(INTERVAL, EXACT, f"only connectors with {MODE}={MICRO_BATCH} run by intervals")
    if why := interval_refusal(connector, config):
        raise ConfigError(INTERVAL, EXACT, f"not possible: {why}")
