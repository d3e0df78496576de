"""Tests of the example DAG example_topics_to_database."""

from __future__ import annotations

import importlib
import sqlite3
from collections.abc import Mapping
from pathlib import Path

import pytest

from sluiceway.api import SinkRecord
from sluiceway.connectors.jdbc.sink.connector import JdbcSinkConnector
from sluiceway.data import INT64_SCHEMA, STRING_SCHEMA, Schema, Struct
from sluiceway.operators import SinkConnectorOperator
from sluiceway.testing import run_sink

KEY = Schema.struct({"id": INT64_SCHEMA})
VALUE = Schema.struct({"name": STRING_SCHEMA})


def record(offset: int, key: int, name: str | None) -> SinkRecord:
    value, schema = (None, None) if name is None else (Struct(VALUE, {"name": name}), VALUE)
    return SinkRecord("people", 0, offset, value, schema, Struct(KEY, {"id": key}), KEY)


def test_upserts_and_tombstones_change_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "target.db"
    monkeypatch.setenv("SLUICEWAY_EXAMPLE_TARGET", f"jdbc:sqlite:{file}")
    monkeypatch.setenv("SLUICEWAY_EXAMPLE_TOPICS", "people")
    from sluiceway.dags import example_topics_to_database as example

    dag = importlib.reload(example).dag
    [operator] = dag.tasks
    assert isinstance(operator, SinkConnectorOperator)
    assert isinstance(operator.config, Mapping)
    assert (dag.schedule, operator.config["topics"]) == ("@continuous", "people")
    assert not [each.errors for each in JdbcSinkConnector.validate(operator.config).values() if each.errors]
    run_sink(
        JdbcSinkConnector, operator.config, [record(0, 1, "Ann"), record(1, 2, "Bob"), record(2, 1, "Anna"), record(3, 2, None)]
    )
    with sqlite3.connect(file) as connection:
        assert connection.execute("select id, name from people").fetchall() == [(1, "Anna")]
