"""Validation of the keys of exact runs."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from sluiceway.config.intervals import FIELD, INTERVAL, TIME, IntervalSettings, milliseconds
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConfigError
from sluiceway.herder.intervals import reads_in_order, reads_log
from sluiceway.herder.validation import validate_config
from support.engine_connectors import ScriptedSourceConnector

_WORKER = WorkerConfig.of({})
_BATCH = {"name": "c", "airflow.mode": "micro-batch", "airflow.interval": "exact"}
_SINK = {"connector.class": "FileStreamSink", "topics": "t", "file": "/f"}
_SOURCE = {"connector.class": "FileStreamSource", "topic": "t", "file": "/f"}
_FOLDER = {"connector.class": "FolderSource", "topic": "t", "paths": "/d"}
_SEARCH = {"connector.class": "OpenSearchSource", "connection.url": "http://h:9200", "index": "i"}
_CATCHUP = {"airflow.catchup": "true", "airflow.schedule": "@hourly", "airflow.start.date": "2026-01-01"}
_SPARK = {"connector.class": "SparkSource", "format": "parquet", "path": "/p", "topic": "t"}
_JDBC = {
    "connector.class": "JdbcSource",
    "connection.url": "jdbc:sqlite::memory:",
    "table.whitelist": "t",
    "topic.prefix": "p",
    "incrementing.column.name": "id",
}


def _errors(config: dict[str, str]) -> list[str]:
    found = validate_config(config, _WORKER, offline=True)
    [value] = [info.value for info in found.configs if info.value and info.value.name == "airflow.interval"]
    return list(value.errors)


@pytest.mark.parametrize(
    ("config", "why"),
    [
        (_SINK, None),
        ({**_SINK, "connector.class": "SparkSink", "path": "/f"}, "Spark reads its topics, and knows no intervals"),
        (_SOURCE, "FileStreamSourceConnector has no time by which it could read an interval"),
        ({**_FOLDER, "mode": "files"}, None),
        (_SEARCH, "only mode=timestamp reads by time"),
        ({**_SEARCH, "mode": "timestamp", "timestamp.field": "at"}, None),
        ({"connector.class": "HBaseSource", "hbase.thrift.servers": "h:1", "hbase.table": "t", "topic": "t"}, None),
        ({"connector.class": "RedisStreamSource", "redis.uri": "redis://h", "redis.stream.name": "s", "topic": "t"}, None),
        ({**_FOLDER, "mode": "logs"}, "logs are followed, and have no intervals"),
        ({**_SPARK, "timestamp.column.name": "at"}, None),
        ({**_SPARK, "incrementing.column.name": "id"}, "it reads by no time: set timestamp.column.name"),
        ({**_SOURCE, "file": "/f-${airflow:run:ds}"}, None),
        ({**_SOURCE, "file": "/f-${airflow:variable:ds}"}, "has no time"),
        ({**_JDBC, "mode": "timestamp+incrementing", "timestamp.column.name": "at"}, None),
        ({**_JDBC, "mode": "incrementing"}, "mode=incrementing reads no timestamps: set mode=timestamp"),
        ({**_SINK, "airflow.schedule": "lag:5"}, "does not go with airflow.schedule=lag:5, which has no times"),
        ({**_SINK, "airflow.mode": "long-running"}, "only connectors with airflow.mode=micro-batch run by intervals"),
    ],
)
def test_exact_intervals_are_refused_where_they_are_not_possible(config: dict[str, str], why: str | None) -> None:
    errors = _errors({**_BATCH, **config})
    assert [str(why) in error for error in errors] == ([True] if why else []), errors
    assert _errors({**_BATCH, **config, "airflow.interval": "available"}) == []


def test_a_sink_reads_the_time_of_a_record_from_a_field() -> None:
    found = validate_config({**_BATCH, **_SINK, "airflow.interval.field": "at"}, _WORKER, offline=True)
    assert [error for info in found.configs if info.value for error in info.value.errors] == []


@pytest.mark.parametrize("connector", ["postgresql.PostgresConnector", "mysql.MySqlConnector", "mariadb.MariaDbConnector"])
@pytest.mark.parametrize(
    ("more", "key", "why"),
    [
        ({}, "", ""),
        ({"snapshot.mode": "initial_only"}, "airflow.interval", "snapshot.mode=initial_only reads no changes"),
        ({"airflow.interval.again": "append"}, "airflow.interval.again", "the connector reads from its offset on"),
        ({"airflow.max.active.runs": "2"}, "airflow.max.active.runs", "its intervals follow one another"),
        ({"airflow.interval.late": "dlq"}, "airflow.interval.late", "only sinks have late records"),
    ],
)
def test_a_log_has_intervals_that_follow_one_another(connector: str, more: dict[str, str], key: str, why: str) -> None:
    config = {**_BATCH, "connector.class": f"io.debezium.connector.{connector}", **more}
    assert reads_in_order(config)
    assert reads_log(config)
    found = validate_config(config, _WORKER, offline=True)
    errors = {info.value.name: error for info in found.configs if info.value for error in info.value.errors}
    mine = {name: error for name, error in errors.items() if name.startswith("airflow.")}
    assert list(mine) == ([key] if key else []), mine
    assert why in "".join(mine.values())


class Plugin(ScriptedSourceConnector):
    """A plugin that does not say whether its records have timestamps."""


class DeclaredPlugin(ScriptedSourceConnector):
    interval_by_timestamp = True


class QueuePlugin(ScriptedSourceConnector):
    @classmethod
    def position_elsewhere(cls, config: Mapping[str, str]) -> str:
        return "The queue has it."


_PLUGIN = {"connector.class": f"{__name__}.Plugin"}
_DECLARED = {"connector.class": f"{__name__}.DeclaredPlugin"}
_BY_RECORD = {"airflow.interval.time": "record"}
_BY_FIELD = {**_BY_RECORD, "airflow.interval.field": "at"}


@pytest.mark.parametrize(
    ("config", "in_order", "key", "why"),
    [
        (_PLUGIN, False, INTERVAL, "do not decrease in a source partition, set airflow.interval.time=record"),
        ({**_PLUGIN, **_BY_RECORD}, True, "", ""),
        (_DECLARED, True, "", ""),
        ({**_DECLARED, **_BY_RECORD}, True, "", ""),
        ({**_DECLARED, "transaction.boundary": "connector"}, False, INTERVAL, "set transaction.boundary=poll"),
        ({**_PLUGIN, **_BY_RECORD, "topic": "${airflow:run:ds}"}, True, "", ""),
        ({**_PLUGIN, "topic": "${airflow:run:ds}"}, False, "", ""),
        ({**_SOURCE, **_BY_RECORD}, False, TIME, "records of FileStreamSourceConnector have no timestamps"),
        ({**_JDBC, "mode": "incrementing", **_BY_RECORD}, False, TIME, "records of JdbcSourceConnector have no timestamps"),
        (
            {**_JDBC, "mode": "timestamp", "timestamp.column.name": "at", **_BY_RECORD},
            False,
            TIME,
            "a time of its own: remove the key",
        ),
        ({**_SINK, **_BY_RECORD}, False, TIME, "only sources need it"),
        ({"connector.class": f"{__name__}.QueuePlugin"}, False, INTERVAL, "QueuePlugin has no time by which"),
        ({"connector.class": f"{__name__}.QueuePlugin", **_BY_RECORD}, False, TIME, "is not in Kafka's offsets"),
        ({"connector.class": "SparkSource", **_BY_RECORD}, False, TIME, "tasks of SparkSourceConnector return DataFrames"),
        ({**_PLUGIN, **_BY_RECORD, "airflow.interval.again": "append"}, True, "airflow.interval.again", "from its offset on"),
        ({**_PLUGIN, **_BY_RECORD, "airflow.max.active.runs": "2"}, True, "airflow.max.active.runs", "follow one another"),
        ({**_PLUGIN, "airflow.interval.time": "field"}, False, TIME, "Invalid value field"),
        ({**_PLUGIN, **_BY_FIELD}, True, "", ""),
        ({**_PLUGIN, "airflow.interval.field": "at"}, False, FIELD, "a source needs airflow.interval.time=record, too"),
        ({**_FOLDER, "mode": "files", "format": "json", **_BY_FIELD}, True, "", ""),
        ({**_FOLDER, "mode": "logs", "format": "csv", **_BY_FIELD}, True, "", ""),
        ({**_FOLDER, "mode": "files", **_BY_RECORD}, False, TIME, "a time of its own: remove the key"),
        ({**_FOLDER, **_BY_RECORD, "mode": "logs"}, False, TIME, "records of FolderSourceConnector have no timestamps"),
        ({**_JDBC, "mode": "incrementing", **_BY_FIELD}, True, "", ""),
        (
            {**_JDBC, "mode": "timestamp", "timestamp.column.name": "at", **_BY_FIELD},
            False,
            TIME,
            "a time of its own: remove the key",
        ),
        ({"connector.class": "SparkSource", **_BY_FIELD}, False, TIME, "tasks of SparkSourceConnector return DataFrames"),
    ],
)
def test_timestamps_of_records_bound_the_runs_where_they_can(config: dict[str, str], in_order: bool, key: str, why: str) -> None:
    assert reads_in_order(config) is in_order
    assert not reads_log(config), "its offsets have no times"
    found = validate_config({**_BATCH, **config}, _WORKER, offline=True)
    mine = {
        info.value.name: error
        for info in found.configs
        if info.value and info.value.name.startswith("airflow.")
        for error in info.value.errors
    }
    assert key in mine if key else not mine, mine
    assert why in mine.get(key, "")


def test_a_class_that_is_not_installed_here_is_in_order_if_its_config_says_so() -> None:
    assert reads_in_order({"connector.class": "com.example.Orders", **_BY_RECORD})
    assert not reads_in_order({"connector.class": "com.example.Orders"})


@pytest.mark.parametrize(("text", "expected"), [("500ms", 500), ("30s", 30_000), ("10 m", 600_000), ("2h", 7_200_000), ("0s", 0)])
def test_times_have_units(text: str, expected: int) -> None:
    assert milliseconds("key", text) == expected


@pytest.mark.parametrize("text", ["10", "", "-5s", "1.5h", "5 weeks", "s"])
def test_other_times_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"airflow\.interval\.lateness"):
        IntervalSettings.of({"airflow.interval.lateness": text})


def test_catching_up_makes_runs_exact() -> None:
    assert not IntervalSettings.of({}).is_exact
    assert IntervalSettings.of({"airflow.catchup": "true"}).is_exact
    assert not IntervalSettings.of({"airflow.catchup": "true", "airflow.interval": "available"}).is_exact


@pytest.mark.parametrize(
    ("config", "is_valid"),
    [
        ({"airflow.interval": "exact"}, True),
        (_CATCHUP, True),
        ({"airflow.interval": "available"}, False),
        ({}, False),
        ({**_CATCHUP, "connector.class": "SparkSink", "path": "/f"}, False),
        ({**_CATCHUP, **_SOURCE, "file": "/f-${airflow:run:ds}"}, False),
    ],
)
def test_runs_side_by_side_need_exact_intervals(config: dict[str, str], is_valid: bool) -> None:
    key = "airflow.max.active.runs"
    given = {"name": "c", **_SINK, "airflow.mode": "micro-batch", **config, key: "8"}
    found = validate_config(given, _WORKER, offline=True).configs
    [value] = [info.value for info in found if info.value and info.value.name == key]
    assert [INTERVAL in error for error in value.errors] == ([] if is_valid else [True])


def test_a_dag_that_always_runs_has_one_run_at_a_time() -> None:
    key = "airflow.max.active.runs"
    given = {**_BATCH, **_SINK, "airflow.schedule": "@continuous", key: "2"}
    found = validate_config(given, _WORKER, offline=True).configs
    [value] = [info.value for info in found if info.value and info.value.name == key]
    assert "has one run at a time" in value.errors[0]


@pytest.mark.parametrize(
    ("config", "why"),
    [
        (_SINK, "needs errors.tolerance=all and errors.deadletterqueue.topic.name"),
        ({**_SINK, "errors.tolerance": "all"}, "needs errors.tolerance=all"),
        ({**_SINK, "errors.deadletterqueue.topic.name": "dlq"}, "needs errors.tolerance=all"),
        ({**_SINK, "errors.tolerance": "all", "errors.deadletterqueue.topic.name": "dlq"}, None),
        ({**_JDBC, "mode": "timestamp", "timestamp.column.name": "at"}, "only sinks have late records"),
    ],
)
def test_late_records_need_a_dead_letter_queue_to_go_to(config: dict[str, str], why: str | None) -> None:
    key = "airflow.interval.late"
    found = validate_config({**_BATCH, **config, key: "dlq"}, _WORKER, offline=True).configs
    [value] = [info.value for info in found if info.value and info.value.name == key]
    assert [str(why) in error for error in value.errors] == ([True] if why else [])


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({"connector.class": "ParquetSink", "topics": "t", "path": "/p"}, None),
        (_SINK, "the target does not replace what an interval has written: set next or dlq"),
        ({"connector.class": "JdbcSink", "topics": "t", "insert.mode": "upsert", "pk.mode": "record_key"}, "does not replace"),
        ({**_JDBC, "mode": "timestamp", "timestamp.column.name": "at"}, "only sinks have late records"),
    ],
)
def test_late_records_have_their_run_cleared_only_where_it_replaces(config: dict[str, str], why: str | None) -> None:
    key = "airflow.interval.late"
    found = validate_config({**_BATCH, **config, key: "rerun"}, _WORKER, offline=True).configs
    [value] = [info.value for info in found if info.value and info.value.name == key]
    assert [str(why) in error for error in value.errors] == ([True] if why else [])


_LAKE = {"connector.class": "DeltaSink", "topics": "t", "delta.path": "/p", "delta.tables": "t"}
_ROWS = {"connector.class": "JdbcSink", "topics": "t", "connection.url": "jdbc:postgresql://h/d"}


@pytest.mark.parametrize(
    ("config", "key", "why"),
    [
        (_LAKE, "", ""),
        ({**_LAKE, "airflow.interval.late": "rerun"}, "", ""),
        (_ROWS, "", ""),
        ({**_ROWS, "airflow.interval.late": "rerun", "fields.whitelist": "a,hour"}, "", ""),
        ({**_ROWS, "fields.whitelist": "a"}, "fields.whitelist", "must have hour, which airflow.interval.column names"),
        ({**_ROWS, "insert.mode": "upsert", "pk.mode": "record_key"}, "airflow.interval.column", "without updates"),
        ({**_ROWS, "pk.mode": "record_key", "delete.enabled": "true"}, "airflow.interval.column", "without updates"),
        ({"connector.class": "ParquetSink", "topics": "t", "path": "/p"}, "airflow.interval.column", "only IcebergSink"),
        (
            {"connector.class": "RedisStreamSource", "redis.uri": "redis://h", "redis.stream.name": "s", "topic": "t"},
            "airflow.interval.column",
            "only IcebergSink",
        ),
    ],
)
def test_a_column_replaces_rows_of_tables_to_which_they_are_added(config: dict[str, str], key: str, why: str) -> None:
    found = validate_config({**_BATCH, **config, "airflow.interval.column": "hour"}, _WORKER, offline=True)
    errors = {info.value.name: error for info in found.configs if info.value for error in info.value.errors}
    assert list(errors) == ([key] if key else []), errors
    assert why in "".join(errors.values())
