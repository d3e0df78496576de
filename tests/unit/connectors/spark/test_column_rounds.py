"""The bounds of a database table's new rows, on a real SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from sluiceway.connectors.spark.column_rounds import ColumnRounds
from sluiceway.connectors.spark.source_config import SourceConfig
from sluiceway.testing import MemoryOffsets

CONFIG = {"format": "jdbc", "table": "o", "topic": "o", "incrementing.column.name": "id", "split.max.rows": "10"}


class _Database:
    """Stands for Spark's session, ``DataFrameReader`` and ``DataFrame`` where only queries of the database are made."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.queries: list[str] = []
        self.read = self

    def format(self, _name: str) -> _Database:
        return self

    def options(self, **_options: str) -> _Database:
        return self

    def option(self, name: str, value: str) -> _Database:
        assert name == "query"
        self.queries.append(value)
        return self

    def load(self) -> _Database:
        return self

    def collect(self) -> list[Any]:
        rows = self.connection.execute(self.queries[-1]).fetchall()
        assert all(row[0] is not None for row in rows), "SQLite's JDBC driver cannot read such a row"
        return rows


@pytest.fixture
def database() -> Iterator[_Database]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("create table o (id integer)")
        yield _Database(connection)


def bounds(database: _Database, ids: list[int], position: int | None = None) -> tuple[int | None, int | None, int]:
    database.connection.executemany("insert into o values (?)", [(each,) for each in ids])
    return ColumnRounds(cast("SparkSession", database), SourceConfig.of(CONFIG), MemoryOffsets())._bounds_by_query(position)


def test_an_empty_table_has_no_bounds(database: _Database) -> None:
    assert bounds(database, []) == (None, None, 0)


def test_rows_with_dense_values_are_not_counted(database: _Database) -> None:
    assert bounds(database, [1, 2, 5, 1000]) == (1, 1000, 1000)
    assert "COUNT" not in " ".join(database.queries)


def test_rows_with_large_gaps_are_counted(database: _Database) -> None:
    assert bounds(database, [7, 8, 9, 10**9], position=7) == (8, 10**9, 3)
