"""The features of every dialect."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import pytest

from sluiceway.connectors.jdbc.columns import Column, ColumnType, Kind
from sluiceway.connectors.jdbc.dialects import DIALECTS, parse_url
from sluiceway.connectors.jdbc.dialects.base import Dialect
from sluiceway.connectors.jdbc.dialects.errors import ErrorKind
from sluiceway.connectors.jdbc.dialects.sql import TableId
from sluiceway.connectors.jdbc.sink.semantic_types import SEMANTIC_TYPES
from sluiceway.connectors.jdbc.sink.types import binder_of, column_type
from sluiceway.connectors.jdbc.source.offsets import Position
from sluiceway.connectors.jdbc.source.sql import Bounds, SelectBuilder
from sluiceway.data import Schema, Type, date_schema, decimal_schema, time_schema, timestamp_schema
from sluiceway.errors import RetriableError

PLAIN_TYPES = [each for each in Type if each.primitive]
LOGICAL = [decimal_schema(2), date_schema(), time_schema(), timestamp_schema()]
NOON = dt.datetime(2024, 1, 1, 12, tzinfo=dt.timezone.utc)


@pytest.fixture(params=DIALECTS, ids=lambda dialect: dialect.name)
def dialect(request: pytest.FixtureRequest) -> Dialect:
    made: Dialect = request.param()
    return made


def test_every_schema_has_a_column_type_and_a_binder_for_it(dialect: Dialect) -> None:
    schemas = [*map(Schema, PLAIN_TYPES), *LOGICAL, *(Schema(Type.STRING, name=name) for name in SEMANTIC_TYPES)]
    for schema in schemas:
        assert column_type(dialect, "f", schema)
        binder_of(dialect, ZoneInfo("Europe/Berlin"), "f", schema)


def test_every_example_url_is_parsed_by_its_dialect(dialect: Dialect) -> None:
    for form in dialect.url_forms:
        assert parse_url(form.replace("...", "host/database")).dialect == dialect.name


def test_statements_have_one_marker_for_each_parameter(dialect: Dialect) -> None:
    columns = ("id", "name", "size")
    sql = dialect.offsets_sql(dialect.qualified(TableId(None, None, "offsets")))
    expected = {
        dialect.insert("t", columns): 3,
        dialect.upsert("t", columns, 1): 3,
        dialect.update("t", columns, 1): 3,
        dialect.delete("t", columns[:2]): 2,
        sql.create: 0,
        sql.claim: 3,
        sql.select: 3,
        sql.update: 5,
    }
    assert {statement: statement.count(dialect.marker) for statement in expected} == expected


def test_a_pass_with_timestamps_has_one_marker_for_each_parameter(dialect: Dialect) -> None:
    columns = [Column("id", ColumnType(Kind.INT64), "bigint"), Column("at", ColumnType(Kind.TIMESTAMP), "timestamp")]
    select = SelectBuilder(dialect, columns, table=TableId(None, None, "t"), incrementing="id", timestamps=["at"])
    statement = select.rows(Position(7, NOON), Bounds(None, NOON))
    in_forms = statement.sql.replace("%%", "")
    assert in_forms.count(dialect.marker) == len(statement.parameters) == 4


def test_quoted_names_are_parsed_into_the_same_parts(dialect: Dialect) -> None:
    for name in ("plain", "with.dot", "with]bracket", 'with"quote', "with`tick"):
        assert dialect.parse_table(dialect.quote(name)).table == name


def test_errors_of_connect_do_not_depend_on_the_dialect(dialect: Dialect) -> None:
    assert dialect.error_kind(RetriableError("away")) is ErrorKind.UNREACHABLE
    assert dialect.error_kind(ValueError("bad")) is ErrorKind.RECORD
    assert dialect.error_kind(MemoryError()) is ErrorKind.OTHER
