"""Decides whether a connector can move the records of an interval only. No I/O."""

from __future__ import annotations

from collections.abc import Mapping

from sluiceway.api import Connector, DataFrameSinkTask, IntervalRepeat, SinkConnector, SourceConnector
from sluiceway.config.connector import CONNECTOR_CLASS, CONNECTOR_VERSION
from sluiceway.config.intervals import (
    AGAIN,
    APPEND,
    AVAILABLE,
    COLUMN,
    DLQ,
    EXACT,
    FIELD,
    INTERVAL,
    LATE,
    MAX_ACTIVE_RUNS,
    NEXT,
    RECORD,
    RERUN,
    TIME,
    IntervalSettings,
)
from sluiceway.config.plugin_keys import IN_JAVA
from sluiceway.config.schedules import CONTINUOUS, LONG_RUNNING, MICRO_BATCH, MODE, ON_CHANGE, SCHEDULE
from sluiceway.config.sink_keys import DLQ_TOPIC
from sluiceway.config.variables import references
from sluiceway.discovery import connector_class, language_of
from sluiceway.errors import ConfigError, ConnectError
from sluiceway.runtime.source.record_times import by_record_time, has_own_intervals, record_time_refusal, wants_record_time

_RUN = "run"
"""The path of references to the DAG run, as in ``${airflow:run:ds}``."""


def interval_refusal(connector: type[Connector], config: Mapping[str, str], *, by_references: bool = True) -> str:
    """Return why a connector cannot move the records of an interval only; empty if it can.

    A source that has no time can by its records' timestamps (``by_record_time``), or, with ``by_references``, if its config
    refers to the DAG run: its author bounds what it reads.
    """
    if issubclass(connector, SinkConnector) and issubclass(connector.task_class, DataFrameSinkTask):
        return "Spark reads its topics, and knows no intervals"
    if not issubclass(connector, SourceConnector):
        return ""
    if by_record_time(connector, config):
        return ""
    if by_references and any(each.path == _RUN for each in references(config)):
        return ""
    why = connector.interval_refusal(config)
    if why and wants_record_time(connector, config):
        return record_time_refusal(connector, config)
    if why and connector.interval_by_timestamp is None and not record_time_refusal(connector, config):
        return f"{why}. If its records have timestamps that do not decrease in a source partition, set {TIME}={RECORD}"
    return why


def reads_in_order(config: Mapping[str, str]) -> bool:
    """Return whether the runs of a connector's intervals follow one another, each from the connector's offsets on.

    So it is with a database's log, and with a source whose records' timestamps bound the runs. Where the connector's class is not
    known, the key of its config decides: its driver knows the class.
    """
    connector = _known_class(config)
    return config.get(TIME) == RECORD if connector is None else _is_in_order(connector, config)


def reads_log(config: Mapping[str, str]) -> bool:
    """Return whether the stored offsets of a connector have times, as those of a database's log do."""
    return (connector := _known_class(config)) is not None and _is_log(connector)


def _known_class(config: Mapping[str, str]) -> type[Connector] | None:
    try:
        return connector_class(config.get(CONNECTOR_CLASS, ""), config.get(CONNECTOR_VERSION))
    except ConnectError:
        return None


def _is_log(connector: type[Connector]) -> bool:
    return issubclass(connector, SourceConnector) and connector.interval_in_order


def _is_in_order(connector: type[Connector], config: Mapping[str, str]) -> bool:
    return _is_log(connector) or by_record_time(connector, config)


def check_interval(connector: type[Connector], config: Mapping[str, str]) -> None:
    """Raise ConfigError for keys of intervals that the connector cannot have.

    An invalid value of a key is an error of that key alone.
    """
    if config.get(TIME) == RECORD:
        _check_time(connector, config)
    if _is_in_order(connector, config) and config.get(AGAIN) == APPEND:
        raise ConfigError(AGAIN, APPEND, "the connector reads from its offset on: to read a part again, set its offset")
    if config.get(FIELD) and issubclass(connector, SourceConnector):
        _check_field(connector, config)
    if config.get(COLUMN):
        _check_column(connector, config)
    if config.get(LATE) in (DLQ, RERUN):
        _check_late(connector, config)
    if config.get(INTERVAL) == EXACT:
        _check_exact(connector, config)
    if config.get(MAX_ACTIVE_RUNS, "1").strip() != "1":
        _check_side_by_side(connector, config)


def _check_time(connector: type[Connector], config: Mapping[str, str]) -> None:
    if not issubclass(connector, SourceConnector):
        raise ConfigError(TIME, RECORD, "only sources need it: sinks read by the timestamps of their records in any case")
    if has_own_intervals(connector, config):
        raise ConfigError(TIME, RECORD, "the connector reads intervals by a time of its own: remove the key")
    if why := record_time_refusal(connector, config):
        raise ConfigError(TIME, RECORD, f"not possible: {why}")


def _check_field(connector: type[SourceConnector], config: Mapping[str, str]) -> None:
    if config.get(TIME) != RECORD:
        raise ConfigError(FIELD, config[FIELD], f"a source needs {TIME}={RECORD}, too")
    if language_of(connector) == IN_JAVA:
        raise ConfigError(FIELD, config[FIELD], "the times of a Java plugin's records are their timestamps: remove the key")


def _check_late(connector: type[Connector], config: Mapping[str, str]) -> None:
    late = config[LATE]
    if issubclass(connector, SourceConnector):
        raise ConfigError(LATE, late, "only sinks have late records: a source reads by time")
    if late == RERUN:
        if not (issubclass(connector, SinkConnector) and connector.interval_repeat(config) is IntervalRepeat.REPLACES):
            raise ConfigError(LATE, RERUN, f"the target does not replace what an interval has written: set {NEXT} or {DLQ}")
        return
    if not config.get(DLQ_TOPIC) or config.get("errors.tolerance", "").strip().lower() != "all":
        raise ConfigError(LATE, DLQ, f"needs errors.tolerance=all and {DLQ_TOPIC}, or late records would be lost")


def _check_column(connector: type[Connector], config: Mapping[str, str]) -> None:
    column = config[COLUMN]
    if not (issubclass(connector, SinkConnector) and connector.replaces_rows):
        raise ConfigError(COLUMN, column, "only IcebergSink, DeltaSink, and JdbcSink replace rows by a column")
    if connector.interval_repeat(config) is not IntervalRepeat.REPLACES:
        raise ConfigError(COLUMN, column, "rows are replaced in the listed tables, to which rows are added, without updates")


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
    if _is_in_order(connector, config):
        raise ConfigError(MAX_ACTIVE_RUNS, more, "the connector reads from its offset on: its intervals follow one another")
    if config.get(SCHEDULE) == CONTINUOUS:
        raise ConfigError(MAX_ACTIVE_RUNS, more, f"{SCHEDULE}={CONTINUOUS} has one run at a time")
    refused = interval_refusal(connector, config, by_references=settings.choice == EXACT)
    if not settings.is_exact or refused:
        raise ConfigError(MAX_ACTIVE_RUNS, more, f"runs side by side would take records from each other: set {INTERVAL}={EXACT}")
