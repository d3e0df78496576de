"""The statements of the source."""

from __future__ import annotations

import datetime as dt
from typing import Any

from sluiceway.connectors.jdbc.columns import Column, ColumnType, Kind
from sluiceway.connectors.jdbc.dialects import dialect_of
from sluiceway.connectors.jdbc.dialects.sql import TableId
from sluiceway.connectors.jdbc.source.offsets import Position
from sluiceway.connectors.jdbc.source.sql import Bounds, KeyRange, SelectBuilder

UTC = dt.timezone.utc


NOON = dt.datetime(2024, 1, 1, 12, tzinfo=UTC)


def builder(dialect: str = "postgresql", *, nullable: bool = False, **more: Any) -> SelectBuilder:
    columns = [
        Column("id", ColumnType(Kind.INT64), "bigint", nullable=nullable),
        Column("at", ColumnType(Kind.TIMESTAMP), "timestamp"),
        Column("50%", ColumnType(Kind.STRING, as_text=True), "json"),
    ]
    return SelectBuilder(dialect_of(dialect), columns, table=TableId(None, "s", "t"), **more)


def test_the_condition_on_timestamp_and_number_can_use_an_index() -> None:
    statement = builder(incrementing="id", timestamps=["at"]).rows(Position(7, NOON), Bounds(None, NOON))
    naive = NOON.replace(tzinfo=None)
    assert statement.sql == (
        'select "id", "at", "50%%"::text as "50%%", "at" as sluiceway_time from "s"."t" '
        'where "at" >= %s and ("at" > %s or "id" > %s) and "at" < %s order by "at", "id"'
    )
    assert statement.parameters == (naive, naive, 7, naive)


def test_without_a_position_there_is_no_lower_bound() -> None:
    assert " where " not in builder(incrementing="id").rows(Position(), Bounds()).sql
    assert '"id" is not null' in builder(nullable=True, incrementing="id").rows(Position(), Bounds()).sql
    assert '"at" is not null' in builder(timestamps=["at"]).rows(Position(), Bounds()).sql


def test_a_range_is_read_in_the_order_of_its_column() -> None:
    statement = builder(suffix="limit 3").rows(Position(), Bounds(), KeyRange("id", 3, 9))
    assert statement.sql.endswith('where "id" > %s and "id" <= %s order by "id" limit 3')
    assert statement.parameters == (3, 9)
