"""Decides whether a connector can move the records of an interval only. No I/O."""

from __future__ import annotations

from collections.abc import Mapping

from sluiceway.api import Connector, DataFrameSinkTask, SinkConnector, SourceConnector
from sluiceway.config.intervals import EXACT, INTERVAL, MAX_ACTIVE_RUNS, IntervalSettings
from sluiceway.config.schedules import LONG_RUNNING, MICRO_BATCH, MODE
from sluiceway.config.variables import references
from sluiceway.errors import ConfigError

_RUN = "run"
"""The path of references to the DAG run, as in ``${airflow:run:ds}``."""


def interval_refusal(connector: type[Connector], config: Mapping[str, str]) -> str:
    """Return why a connector cannot move the records of an interval only; empty if it can.

    A source that has no time can if its config refers to the DAG run: its author bounds what it reads.
    """
    if issubclass(connector, SinkConnector) and issubclass(connector.task_class, DataFrameSinkTask):
        return "Spark reads its topics, and knows no intervals"
    if not issubclass(connector, SourceConnector) or any(each.path == _RUN for each in references(config)):
        return ""
    return connector.interval_refusal(config)


def check_interval(connector: type[Connector], config: Mapping[str, str]) -> None:
    """Raise ConfigError if the config asks for exact intervals that the connector cannot have.

    An invalid value of a key is an error of that key alone.
    """
    if config.get(INTERVAL) != EXACT:
        if config.get(MAX_ACTIVE_RUNS, "1").strip() != "1" and not IntervalSettings.of(config).is_exact:
            why = f"runs side by side would take records from each other: set {INTERVAL}={EXACT}"
            raise ConfigError(MAX_ACTIVE_RUNS, config[MAX_ACTIVE_RUNS], why)
        return
    if config.get(MODE, LONG_RUNNING) != MICRO_BATCH:
        raise ConfigError(INTERVAL, EXACT, f"only connectors with {MODE}={MICRO_BATCH} run by intervals")
    if why := interval_refusal(connector, config):
        raise ConfigError(INTERVAL, EXACT, f"not possible: {why}")
