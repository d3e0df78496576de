# ruff: noqa: S608 (of a database of our own)
"""Columns of the JDBC source on SQLite: the same records, offsets and errors as rows."""

from __future__ import annotations

import functools
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluiceway.api import NotColumnar, SourceColumns
from sluiceway.connectors.jdbc.columns import Column
from sluiceway.connectors.jdbc.dialects.sql import TableId
from sluiceway.connectors.jdbc.dialects.sqlite import SqliteDialect
from sluiceway.connectors.jdbc.dialects.values import UTC
from sluiceway.connectors.jdbc.source import table_reader
from sluiceway.connectors.jdbc.source.column_rows import column_batch
from sluiceway.connectors.jdbc.source.config import source_config
from sluiceway.connectors.jdbc.source.connector import JdbcSourceConnector
from sluiceway.connectors.jdbc.source.shape import Shape, shape_of
from sluiceway.connectors.jdbc.source.task import JdbcSourceTask
from sluiceway.errors import ConnectError
from sluiceway.testing.running import RunningSource
from support.column_forms import EXAMPLES, many
from support.jdbc_source import check_columns, columns_like_rows, polled

TYPES = ("integer", "real", "text", "blob", "boolean", "decimal(10,2)", "numeric(6,0)", "date", "time", "timestamp")
ROW = (7, 0.1, "ä€😀", b"\x00\xff", 1, 12.5, 99, "2024-02-29", "23:59:58.123456", "1950-05-06 07:08:09.123456")


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_reader, "FEWEST_ROWS_FOR_COLUMNS", 1)


def config_of(file: Path, rows: list[tuple[Any, ...]], **more: str) -> dict[str, str]:
    """Fill a new database; return the config of a source that reads it in batches of three rows."""
    file.unlink(missing_ok=True)
    columns = ", ".join(f"c{number} {kind}" for number, kind in enumerate(TYPES))
    with closing(sqlite3.connect(file)) as database:
        database.execute(f"create table t (id integer not null primary key, changed timestamp not null, {columns})")
        database.executemany(f"insert into t values ({', '.join('?' * (len(TYPES) + 2))})", rows)
        database.commit()
    keys = {name.replace("_", "."): value for name, value in more.items()}
    config = {"connection.url": f"jdbc:sqlite:{file}", "topic.prefix": "p-", "poll.interval.ms": "20", "batch.max.rows": "3"}
    return {**config, "timestamp.column.name": "changed" if "timestamp" in keys["mode"] else "", **keys}


def some_rows(count: int = 10) -> list[tuple[Any, ...]]:
    """Return rows of which several in succession have one timestamp."""
    nothing = (None,) * len(ROW)
    return [(n, f"2024-01-01 10:00:0{n // 4}.5", *(nothing if n % 3 == 2 else ROW)) for n in range(1, count + 1)]


@pytest.mark.parametrize(
    "more",
    [
        {"mode": "bulk", "poll_interval_ms": "3600000"},
        {"mode": "incrementing"},
        {"mode": "timestamp"},
        {"mode": "timestamp+incrementing"},
        {"mode": "incrementing", "sluiceway_snapshot_ranges": "2"},
        {"mode": "incrementing", "query": "select * from t", "incrementing_column_name": "id"},
        {"mode": "bulk", "poll_interval_ms": "3600000", "query": "select * from t order by id"},
        {"mode": "incrementing", "sluiceway_deletes_interval_ms": "60000"},
        {"mode": "incrementing", "numeric_mapping": "best_fit", "timestamp_granularity": "micros_long"},
        {"mode": "incrementing", "timestamp_granularity": "nanos_iso_datetime_string", "db_timezone": "Europe/Berlin"},
    ],
    ids=lambda more: "-".join(more.values()),
)
def test_all_modes(tmp_path: Path, more: dict[str, str]) -> None:
    config = config_of(tmp_path / "rows.db", some_rows(), **more)
    assert columns_like_rows(config, 10) == 10


ODD = st.sampled_from([None, 0, -1, 1 << 31, 2.5, -0.0, float("inf"), "12", "1e3", "x", b"\xff", "2024-02-29", "10:11:12", True])
USUAL = st.tuples(
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.binary(),
    st.booleans(),
    st.decimals(-9999, 9999, places=2).map(str),
    st.integers(-99999, 99999),
    st.dates().map(str),
    st.times().map(str),
    st.datetimes().map(str),
)


@functools.cache
def shape_of_types() -> Shape:
    config = source_config({"connection.url": "jdbc:sqlite:x", "mode": "bulk", "topic.prefix": "p-"})
    dialect = SqliteDialect()
    columns = [Column(f"c{number}", dialect.parse_type(kind), kind) for number, kind in enumerate(TYPES)]
    table = TableId(None, None, "t")
    return shape_of(config, dialect, columns, {"table": "t"}, table=table, name="table t", zone=UTC)


@settings(many, max_examples=max(1, EXAMPLES // 4))
@given(st.lists(USUAL, min_size=1, max_size=7), st.integers(0, len(TYPES) - 1), ODD)
def test_any_values(values: list[tuple[Any, ...]], number: int, odd: Any) -> None:
    shape = shape_of_types()
    column_batch(shape, values)  # fits
    for rows in (values, [*values, (*values[-1][:number], odd, *values[-1][number + 1 :])]):
        try:
            batch = column_batch(shape, rows)
        except NotColumnar:
            continue
        check_columns(batch, shape.make(rows))


def test_small_batches_are_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert columns_like_rows(config_of(tmp_path / "rows.db", some_rows(), mode="incrementing"), 10) == 0


def test_after_rows_that_do_not_fit_the_rest_of_a_pass_is_rows(tmp_path: Path) -> None:
    rows = some_rows()
    rows[4] = (*rows[4][:7], -0.001, *rows[4][8:])  # rounded to a negative zero, which Arrow's decimals lack
    config = config_of(tmp_path / "rows.db", rows, mode="incrementing")
    assert columns_like_rows(config, 10) == 3


def test_a_row_that_cannot_be_converted_is_the_same_error(tmp_path: Path) -> None:
    rows = some_rows()
    rows[7] = (*rows[7][:9], "no date", *rows[7][10:])
    config = config_of(tmp_path / "rows.db", rows, mode="incrementing")
    errors = []
    for columns in (False, True):
        with pytest.raises(ConnectError) as raised:
            polled(config, 10, columns=columns)
        errors.append(str(raised.value))
    assert "'incrementing': 6} cannot be converted" in errors[0]
    assert errors[0] == errors[1]


def test_a_pass_that_was_given_up_continues_after_its_last_batch(tmp_path: Path) -> None:
    config = config_of(tmp_path / "rows.db", some_rows(), mode="incrementing")
    with RunningSource(JdbcSourceConnector, config) as source:
        [task] = source.tasks
        assert isinstance(task, JdbcSourceTask)
        assert isinstance(source.call(task.poll_columns), SourceColumns)
        task._abandon()
        assert [record.value["id"] for record in source.call(task.poll) or ()] == [4, 5, 6]
