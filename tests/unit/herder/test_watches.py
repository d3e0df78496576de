"""Validation of ``airflow.schedule=on-change``."""

from __future__ import annotations

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.herder.validation import validate_config

_WORKER = WorkerConfig.of({})
_CHANGE = {"name": "c", "airflow.mode": "micro-batch", "airflow.schedule": "on-change"}
_FOLDER = {"connector.class": "FolderSource", "topic": "t", "paths": "/d", "mode": "files"}
_JDBC = {"connector.class": "JdbcSource", "connection.url": "jdbc:sqlite:/d", "topic.prefix": "p", "mode": "bulk"}
_DEBEZIUM = "io.debezium.connector"


def _errors(config: dict[str, str]) -> dict[str, list[str]]:
    found = validate_config(config, _WORKER, offline=True)
    named = {info.value.name: list(info.value.errors) for info in found.configs if info.value}
    return {name: errors for name, errors in named.items() if errors and name.startswith("airflow.")}


@pytest.mark.parametrize(
    ("config", "why"),
    [
        (_FOLDER, None),
        ({**_FOLDER, "mode": "logs"}, None),
        ({**_FOLDER, "paths": "s3://b/d"}, None),
        (_JDBC, None),
        ({**_JDBC, "mode": "timestamp", "timestamp.column.name": "at"}, None),
        ({"connector.class": "RedisStreamSource", "redis.uri": "redis://h", "redis.stream.name": "s", "topic": "t"}, None),
        ({"connector.class": f"{_DEBEZIUM}.postgresql.PostgresConnector"}, None),
        ({"connector.class": f"{_DEBEZIUM}.mysql.MySqlConnector"}, None),
        ({"connector.class": f"{_DEBEZIUM}.mariadb.MariaDbConnector"}, None),
        (
            {"connector.class": f"{_DEBEZIUM}.mariadb.MariaDbConnector", "heartbeat.action.query": "insert into t values (1)"},
            "each run would write to the log with heartbeat.action.query",
        ),
        (
            {"connector.class": f"{_DEBEZIUM}.postgresql.PostgresConnector", "heartbeat.action.query": "select 1"},
            "each run would write to the log with heartbeat.action.query",
        ),
        ({**_JDBC, "query": "select 1"}, "the newest row of a query can only be found by running it: name tables instead"),
        (
            {"connector.class": "RedisGroupSource", "redis.uri": "redis://h", "redis.stream.name": "s", "topic": "t"},
            "not possible with RedisGroupSource: RedisGroupSourceConnector cannot tell whether its system has something new",
        ),
        ({"connector.class": "FileStreamSource", "topic": "t", "file": "/f"}, "FileStreamSourceConnector cannot tell"),
        ({**_FOLDER, "paths": "/d/${airflow:run:ds}"}, "paths refers to the DAG run, and there is none before the change"),
        ({**_FOLDER, "paths": "/d/${airflow:variable:x}"}, None),
        ({"connector.class": "FileStreamSink", "topics": "t", "file": "/f"}, "only sources are watched"),
        ({**_FOLDER, "airflow.mode": "long-running"}, "only connectors with airflow.mode=micro-batch run by a schedule"),
    ],
)
def test_a_schedule_on_change_is_refused_by_name_where_nothing_can_be_watched(config: dict[str, str], why: str | None) -> None:
    errors = _errors({**_CHANGE, **config})
    assert list(errors) == (["airflow.schedule"] if why else []), errors
    assert why is None or why in errors["airflow.schedule"][0]


def test_runs_on_changes_have_no_intervals() -> None:
    [error] = _errors({**_CHANGE, **_FOLDER, "airflow.interval": "exact"})["airflow.interval"]
    assert "does not go with airflow.schedule=on-change, which has no times" in error
    assert "airflow.catchup" in _errors({**_CHANGE, **_FOLDER, "airflow.catchup": "true", "airflow.start.date": "2024-01-31"})
