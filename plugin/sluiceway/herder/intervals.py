"""Decides whether a connector can move the records of an interval only. No I/O."""

from __future__ import annotations

from collections.abc import Mapping

from sluiceway.api import Connector, DataFrameSinkTask, SinkConnector, SourceConnector
from sluiceway.config.connector import CONNECTOR_CLASS, CONNECTOR_VERSION
from sluiceway.config.intervals import (
    AGAIN,
    APPEND,
    AVAILABLE,
    DLQ,
    EXACT,
    FIELD,
    INTERVAL,
    LATE,
    MAX_ACTIVE_RUNS,
    IntervalSettings,
)
from sluiceway.config.schedules import CONTINUOUS, LONG_RUNNING, MICRO_BATCH, MODE, ON_CHANGE, SCHEDULE
from sluiceway.config.sink_keys import DLQ_TOPIC
from sluiceway.config.variables import references
from sluiceway.discovery import connector_class
from sluiceway.errors import ConfigError, ConnectError

_RUN = "run"
"""The path of references to the DAG run, as in ``${airflow:run:ds}``."""


def interval_refusal(connector: type[Connector], config: Mapping[str, str], *, by_references: bool = True) -> str:
    """Return why a connector cannot move the records of an interval only; empty if it can.

    A source that has no time can, with ``by_references``, if its config refers to the DAG run: its author bounds what it reads.
    """
    if issubclass(connector, SinkConnector) and issubclass(connector.task_class, DataFrameSinkTask):
        return "Spark reads its topics, and knows no intervals"
    if not issubclass(connector, SourceConnector):
        return ""
    if by_references and any(each.path == _RUN for each in references(config)):
        return ""
    return connector.interval_refusal(config)


def reads_in_order(config: Mapping[str, str]) -> bool:
    """Return whether the intervals of a connector are pieces of one log, which runs read in its order.

    False for a connector whose class is not known here: its driver says so.
    """
    try:
        connector = connector_class(config.get(CONNECTOR_CLASS, ""), config.get(CONNECTOR_VERSION))
    except ConnectError:
        return False
    return _is_in_order(connector)


def _is_in_order(connector: type[Connector]) -> bool:
    return issubclass(connector, SourceConnector) and connector.interval_in_order


def check_interval(connector: type[Connector], config: Mapping[str, str]) -> None:
    """Raise ConfigError for keys of intervals that the connector cannot have.

    An invalid value of a key is an error of that key alone.
    """
    if _is_in_order(connector) and config.get(AGAIN) == APPEND:
        raise ConfigError(
            AGAIN, APPEND, "the connector reads a log, from its offset on: to read a part of it again, set its offset"
        )
    if config.get(FIELD) and issubclass(connector, SourceConnector):
        raise ConfigError(FIELD, config[FIELD], "only sinks read the time of a record from a field")
    if config.get(LATE) == DLQ:
        _check_late(connector, config)
    if config.get(INTERVAL) == EXACT:
        _check_exact(connector, config)
    if config.get(MAX_ACTIVE_RUNS, "1").strip() != "1":
        _check_side_by_side(connector, config)


def _check_late(connector: type[Connector], config: Mapping[str, str]) -> None:
    if issubclass(connector, SourceConnector):
        raise ConfigError(LATE, DLQ, "only sinks have late records: a source reads by time")
    if not config.get(DLQ_TOPIC) or config.get("errors.tolerance", "").strip().lower() != "all":
        raise ConfigError(LATE, DLQ, f"needs errors.tolerance=all and {DLQ_TOPIC}, or late records would be lost")


def _check_exact(connector: type[Connector], config: Mapping[str, str]) -> None:
    schedule = config.get(SCHEDULE) or ""
    if config.get(MODE, LONG_RUNNING) != MICRO_BATCH:
        raise ConfigError(INTERVAL, EXACT, f"only connectors with {MODE}={MICRO_BATCH} run by intervals")
    if schedule == ON_CHANGE or schedule.startswith("lag:"):
        raise ConfigError(INTERVAL, EXACT, f"does not go with {SCHEDULE}={schedule}, which has no times: set {AVAILABLE}")
    if why := interval_refusal(connector, config):
        raise ConfigError(INTERVAL, EXACT, f"not possible: {why}")


def _check_side_by_side(connector: type[Connector], config: Mapping[str, str]) -> None:
    more, settings = config[MAX_ACTIVE_RUNS], IntervalSettings.of(config)
    if _is_in_order(connector):
        raise ConfigError(MAX_ACTIVE_RUNS, more, "the connector reads a log, whose intervals follow one another")
    if config.get(SCHEDULE) == CONTINUOUS:
        raise ConfigError(MAX_ACTIVE_RUNS, more, f"{SCHEDULE}={CONTINUOUS} has one run at a time")
    refused = interval_refusal(connector, config, by_references=settings.choice == EXACT)
    if not settings.is_exact or refused:
        raise ConfigError(MAX_ACTIVE_RUNS, more, f"runs side by side would take records from each other: set {INTERVAL}={EXACT}")
