"""The JDBC sink's task on real databases: batches of columns leave the same rows and offsets as their records."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from sluiceway.api import ColumnBatch, NotColumnar, SinkRecord, TopicPartition
from sluiceway.columns.rows import column_batches
from sluiceway.data import (
    BOOLEAN_SCHEMA,
    BYTES_SCHEMA,
    FLOAT64_SCHEMA,
    INT32_SCHEMA,
    INT64_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    Schema,
    date_schema,
    decimal_schema,
    timestamp_schema,
)
from support.database import DatabaseForTest
from support.jdbc_sink import UPSERT, Sink, person, record, sink, tombstone

PEOPLE = "select id, name from people order by id, name"


def columns(*records: SinkRecord) -> ColumnBatch:
    (batch,) = column_batches(records)
    assert isinstance(batch, ColumnBatch)
    return batch


def in_both_forms(made: Sink, sql: str, *records: SinkRecord) -> list[tuple[Any, ...]]:
    """Write records as columns, then as records into an emptied table; return the rows, which must be the same."""
    made.task.put_columns(columns(*records))
    first = made.rows(sql)
    made.database.execute("delete from people")
    made.put(*records)
    assert made.rows(sql) == first
    return first


@pytest.mark.parametrize("config", [{"pk.mode": "none"}, {"pk.mode": "kafka"}, UPSERT, {**UPSERT, "batch.size": "3"}])
def test_columns_leave_the_rows_that_records_leave(database: DatabaseForTest, config: dict[str, str]) -> None:
    records = [person(offset, offset % 7, None if offset == 3 else f"name {offset}") for offset in range(20)]
    with sink(database, {"auto.create": "true", **config}) as made:
        assert len(in_both_forms(made, PEOPLE, *records)) == (7 if config.get("insert.mode") else 20)


def test_all_types_are_bound_as_in_records(database: DatabaseForTest) -> None:
    schema = Schema.struct(
        {
            "id": INT64_SCHEMA,
            "flag": BOOLEAN_SCHEMA,
            "small": Schema(INT32_SCHEMA.type, optional=True, default=5),
            "ratio": FLOAT64_SCHEMA,
            "price": decimal_schema(2),
            "day": date_schema(),
            "moment": timestamp_schema(),
            "data": BYTES_SCHEMA,
            "text": OPTIONAL_STRING_SCHEMA,
        }
    )
    value = {
        "id": 1,
        "flag": True,
        "small": None,
        "ratio": 0.5,
        "price": Decimal("12.34"),
        "day": dt.date(2026, 2, 3),
        "moment": dt.datetime(2026, 2, 3, 4, 5, 6, 789000, tzinfo=dt.timezone.utc),
        "data": b"\x00\x01",
        "text": None,
    }
    records = [record(offset, None, {**value, "id": offset, "flag": offset % 2 == 0}, schema=schema) for offset in range(3)]
    with sink(database, pk_mode="none", auto_create="true") as made:
        rows = in_both_forms(made, "select * from people order by id", *records)
    assert len(rows) == 3


def test_what_needs_records_is_refused_and_nothing_is_written(database: DatabaseForTest) -> None:
    with sink(database, UPSERT) as made:
        made.put(person(0, 1, "Ann"))
        with pytest.raises(NotColumnar):
            made.task.put_columns(columns(*(tombstone(offset, 1) for offset in range(1, 4))))
        made.database.execute("delete from people")
        made.task.put_columns(columns(person(4, 2, "Bob")))
        assert made.rows(PEOPLE) == [(2, "Bob")]


def test_a_row_that_the_database_refuses_leaves_the_batch_to_records(database: DatabaseForTest) -> None:
    database.execute("create table people (id bigint not null primary key, name varchar(20) not null)")
    with sink(database, pk_mode="record_key") as made:
        batch = columns(person(0, 1, "Ann"), person(1, 2, None), person(2, 3, "Cyd"))
        with pytest.raises(NotColumnar):
            made.task.put_columns(batch)
        assert made.rows(PEOPLE) == []
        made.task.put_columns(columns(person(3, 4, "Dan")))
        assert made.rows(PEOPLE) == [(4, "Dan")]


def test_offsets_are_stored_with_the_rows(database: DatabaseForTest) -> None:
    with sink(database, UPSERT) as made:
        made.task.put_columns(columns(person(5, 1, "Ann"), person(6, 2, "Bob")))
    with sink(database, UPSERT) as again:
        assert again.context.rewinds == {TopicPartition("people", 0): 7}
        again.task.put_columns(columns(person(7, 3, "Cyd")))
        assert again.rows(PEOPLE) == [(1, "Ann"), (2, "Bob"), (3, "Cyd")]
