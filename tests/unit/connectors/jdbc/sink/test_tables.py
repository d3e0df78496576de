"""Creating and extending tables."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sluiceway.connectors.jdbc.dialects import dialect_of
from sluiceway.connectors.jdbc.dialects.sql import TableId
from sluiceway.connectors.jdbc.sink.columns import Column, Layout
from sluiceway.connectors.jdbc.sink.config import SinkOptions
from sluiceway.connectors.jdbc.sink.tables import Table, changes, table_of
from sluiceway.data import INT64_SCHEMA, OPTIONAL_STRING_SCHEMA, STRING_SCHEMA
from sluiceway.errors import ConfigError, ConnectError

SQLITE = dialect_of("sqlite")
PEOPLE = TableId(None, None, "people")


OPTIONS = SinkOptions.of({"connection.url": "jdbc:sqlite:people.db"})


def layout(*names: str, keys: int = 1) -> Layout:
    columns = [
        Column(name, INT64_SCHEMA if name == "id" else OPTIONAL_STRING_SCHEMA, number < keys, "")
        for number, name in enumerate(names)
    ]
    return Layout(tuple(columns), keys, lambda _: (), lambda _: ())


def test_the_table_is_named_by_format_and_topic() -> None:
    dialect = dialect_of("postgresql")
    assert table_of(dialect, "in_${topic}", "people") == TableId(None, None, "in_people")
    assert table_of(dialect, "${topic}", "public.people")[1:] == ("public", "people")
    with pytest.raises(ConfigError, match=r"table\.name\.format=\$\{topic\} and topic a\.b\.c\.d.*RegexRouter"):
        table_of(dialect, "${topic}", "a.b.c.d")


def test_a_table_is_created_only_with_auto_create() -> None:
    with pytest.raises(ConnectError, match=r'no table people.*auto\.create.*CREATE TABLE "people"'):
        changes(OPTIONS, SQLITE, PEOPLE, None, layout("id", "name"))
    assert changes(replace(OPTIONS, auto_create=True), SQLITE, PEOPLE, None, layout("id", "name")) == [
        'CREATE TABLE "people" ("id" BIGINT NOT NULL, "name" TEXT NULL, PRIMARY KEY ("id"))'
    ]


def test_a_column_is_found_by_name_or_as_the_only_one_that_differs_by_case() -> None:
    table = Table(PEOPLE, ("ID", "Name", "name"))
    assert [table.column(name) for name in ("id", "name", "NAME")] == ["ID", "name", None]


def test_missing_columns_are_added_as_nullable_only_with_auto_evolve() -> None:
    table = Table(PEOPLE, ("id",))
    required = Layout((*layout("id").columns, Column("city", STRING_SCHEMA, False, "")), 1, lambda _: (), lambda _: ())
    with pytest.raises(ConnectError, match=r"no column for city, and auto\.evolve is false.*ALTER TABLE"):
        changes(OPTIONS, SQLITE, PEOPLE, table, required)
    added = changes(replace(OPTIONS, auto_evolve=True), SQLITE, PEOPLE, table, required)
    assert added == ['ALTER TABLE "people" ADD COLUMN "city" TEXT NULL']


def test_keys_are_never_added_and_columns_never_dropped() -> None:
    evolving = replace(OPTIONS, auto_evolve=True)
    with pytest.raises(ConnectError, match="keys are never changed"):
        changes(evolving, SQLITE, PEOPLE, Table(PEOPLE, ("name",)), layout("id", "name"))
    assert changes(evolving, SQLITE, PEOPLE, Table(PEOPLE, ("id", "old", "name")), layout("id", "name")) == []
