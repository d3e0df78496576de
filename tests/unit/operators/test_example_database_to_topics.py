"""Tests of the example DAG example_database_to_topics."""

from __future__ import annotations

import importlib
import sqlite3
from collections.abc import Mapping
from pathlib import Path

import pytest

from sluiceway.connectors.jdbc.source.connector import JdbcSourceConnector
from sluiceway.operators import SourceConnectorOperator
from sluiceway.testing import MemoryOffsets, run_source


def test_each_run_copies_the_new_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "example.db"
    monkeypatch.setenv("SLUICEWAY_EXAMPLE_DATABASE", f"jdbc:sqlite:{file}")
    from sluiceway.dags import example_database_to_topics as example

    dag = importlib.reload(example).dag
    [operator] = dag.tasks
    assert isinstance(operator, SourceConnectorOperator)
    assert isinstance(operator.config, Mapping)
    assert (dag.schedule, operator.config["airflow.mode"]) == ("0 2 * * *", "micro-batch")
    with sqlite3.connect(file) as connection:
        for table in ("people", "things"):
            connection.execute(f"create table {table} (id integer primary key)")
        connection.execute("insert into people values (1), (2)")
    config = {key: value for key, value in operator.config.items() if not key.startswith("airflow.")}
    assert not [each.errors for each in JdbcSourceConnector.validate(config).values() if each.errors]
    offsets = MemoryOffsets()
    first = run_source(JdbcSourceConnector, config, offsets=offsets, tasks_max=4)
    with sqlite3.connect(file) as connection:
        connection.execute("insert into things values (7)")
    second = run_source(JdbcSourceConnector, config, offsets=offsets, tasks_max=4)
    assert [(record.topic, record.value["id"]) for record in first] == [("example-db-people", 1), ("example-db-people", 2)]
    assert [(record.topic, record.value["id"]) for record in second] == [("example-db-things", 7)]
