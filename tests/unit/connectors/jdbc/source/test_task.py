"""The JDBC source on SQLite fulfills the contract of source connectors."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from sluiceway.connectors.jdbc.source.connector import JdbcSourceConnector
from sluiceway.testing import SourceConnectorContract


@pytest.fixture
def config(tmp_path: Path) -> dict[str, str]:
    with sqlite3.connect(tmp_path / "people.db") as connection:
        connection.execute("create table people (id integer primary key, name text, changed timestamp not null)")
        connection.executemany(
            "insert into people (name, changed) values (?, ?)", [(f"name {n}", f"2024-01-01 10:00:0{n}") for n in range(5)]
        )
    return {
        "connection.url": f"jdbc:sqlite:{tmp_path / 'people.db'}",
        "topic.prefix": "db-",
        "poll.interval.ms": "20",
        "batch.max.rows": "2",
    }


class TestIncrementing(SourceConnectorContract):
    connector_class = JdbcSourceConnector
    record_count = 5

    @pytest.fixture
    def config(self, config: dict[str, str]) -> dict[str, str]:
        return {**config, "mode": "incrementing"}


class TestTimestampIncrementing(SourceConnectorContract):
    connector_class = JdbcSourceConnector
    record_count = 5

    @pytest.fixture
    def config(self, config: dict[str, str]) -> dict[str, str]:
        return {**config, "mode": "timestamp+incrementing", "timestamp.column.name": "changed"}


class TestTimestamp(SourceConnectorContract):
    connector_class = JdbcSourceConnector
    record_count = 5

    @pytest.fixture
    def config(self, config: dict[str, str]) -> dict[str, str]:
        return {**config, "mode": "timestamp", "timestamp.column.name": "changed"}
