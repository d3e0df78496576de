"""Tests of the example DAGs example_changes_to_topics, example_changes_to_table and example_nightly_changes."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import pytest
from airflow.sdk import DAG

from sluiceway.connectors.cdc.mysql.connector import MariaDbConnector
from sluiceway.connectors.cdc.postgres.connector import PostgresConnector
from sluiceway.connectors.jdbc.sink.connector import JdbcSinkConnector
from sluiceway.operators import SinkConnectorOperator, SourceConnectorOperator

_CLOSED_PORT = "1"


def _dag(module: ModuleType) -> Any:
    found = importlib.reload(module).dag
    assert isinstance(found, DAG)
    return found


def _config(operator: Any) -> Mapping[str, str]:
    assert isinstance(operator, (SourceConnectorOperator, SinkConnectorOperator))
    assert isinstance(operator.config, Mapping)
    return operator.config


def test_changes_to_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICEWAY_EXAMPLE_PG_PORT", _CLOSED_PORT)
    from sluiceway.dags import example_changes_to_topics as example

    dag = _dag(example)
    [operator] = dag.tasks
    assert dag.schedule == "@continuous"
    errors = {name: value.errors for name, value in PostgresConnector.validate(_config(operator)).items() if value.errors}
    assert set(errors) == {"database.hostname"}  # the config is right, but nothing listens at this port


def test_changes_to_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICEWAY_EXAMPLE_PG_PORT", _CLOSED_PORT)
    from sluiceway.dags import example_changes_to_table as example

    dag = _dag(example)
    source, sink = map(_config, dag.tasks)
    errors = {name: value.errors for name, value in PostgresConnector.validate(source).items() if value.errors}
    assert set(errors) == {"database.hostname"}
    assert not [value.errors for value in JdbcSinkConnector.validate(sink).values() if value.errors]
    topic = re.sub(source["transforms.name.regex"], r"copy_\1_\2", "copy.public.customers")
    assert re.fullmatch(sink["topics.regex"], topic)


def test_nightly_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICEWAY_EXAMPLE_MARIADB_PORT", _CLOSED_PORT)
    from sluiceway.dags import example_nightly_changes as example

    dag = _dag(example)
    [operator] = dag.tasks
    config = _config(operator)
    assert (dag.schedule, config["airflow.mode"]) == ("0 3 * * *", "micro-batch")
    errors = {name: value.errors for name, value in MariaDbConnector.validate(config).items() if value.errors}
    assert set(errors) == {"database.hostname"}
