"""Columns of Hive tables: types, merging, and schemas that Hive cannot have."""

from __future__ import annotations

import pytest

from sluiceway.connectors.files.hive.columns import Column, columns, merged, table_schema
from sluiceway.data import INT8_SCHEMA, INT32_SCHEMA, INT64_SCHEMA, OPTIONAL_STRING_SCHEMA, STRING_SCHEMA, Schema
from sluiceway.data.logical import date_schema, decimal_schema, time_schema, timestamp_schema
from sluiceway.errors import DataError

INNER = Schema.struct({"x": INT32_SCHEMA, "y": OPTIONAL_STRING_SCHEMA})


def kinds(schema: Schema, *, avro: bool = False) -> str:
    [column] = columns(Schema.struct({"A": schema}), avro=avro)
    assert column.name == "a"
    return column.type


@pytest.mark.parametrize(
    ("schema", "expected", "in_avro"),
    [
        (INT8_SCHEMA, "tinyint", "int"),
        (INT64_SCHEMA, "bigint", "bigint"),
        (date_schema(), "date", "date"),
        (time_schema(), "int", "int"),
        (timestamp_schema(), "timestamp", "timestamp"),
        (decimal_schema(2), "decimal(38,2)", "decimal(38,2)"),
        (decimal_schema(2).replace(parameters={"scale": "2", "connect.decimal.precision": "9"}), "decimal(9,2)", "decimal(9,2)"),
        (Schema.array(INNER), "array<struct<x:int,y:string>>", "array<struct<x:int,y:string>>"),
        (Schema.map(STRING_SCHEMA, INT8_SCHEMA), "map<string,tinyint>", "map<string,int>"),
        (Schema.map(INT32_SCHEMA, INT32_SCHEMA), "map<int,int>", "array<struct<key:int,value:int>>"),
    ],
)
def test_types(schema: Schema, expected: str, in_avro: str) -> None:
    assert kinds(schema) == expected
    assert kinds(schema, avro=True) == in_avro


@pytest.mark.parametrize(
    "schema",
    [
        decimal_schema(2).replace(parameters={"scale": "2", "connect.decimal.precision": "39"}),
        decimal_schema(-1),
        Schema.struct({"a:b": INT32_SCHEMA}),
        Schema.struct({"a,b": INT32_SCHEMA}),
    ],
)
def test_columns_that_hive_cannot_have(schema: Schema) -> None:
    with pytest.raises(DataError, match="Hive"):
        kinds(schema)


def test_a_table_has_no_column_for_a_partition() -> None:
    schema = Schema.struct({"id": INT64_SCHEMA, "Country": STRING_SCHEMA}, name="row", version=3)
    kept = table_schema(schema, ("country",))
    assert ([field.name for field in kept.fields], kept.name, kept.version) == (["id"], "row", 3)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (None, "values with a schema"),
        (STRING_SCHEMA, "HoistField"),
        (Schema.struct({"Country": STRING_SCHEMA}), "that is not a partition"),
        (Schema.struct({"id": STRING_SCHEMA, "ID": STRING_SCHEMA}), "upper and lower case"),
    ],
)
def test_schemas_without_a_table(schema: Schema | None, message: str) -> None:
    with pytest.raises(DataError, match=message):
        table_schema(schema, ("country",))


def test_columns_are_added_and_widened_never_narrowed_or_removed() -> None:
    table = [Column("a", "int"), Column("b", "double"), Column("gone", "string"), Column("in", "struct<x:int,y:decimal(9,2)>")]
    file = [
        Column("a", "bigint"),
        Column("b", "float"),
        Column("new", "date"),
        Column("in", "struct<x:bigint,z:map<string,int>>"),
    ]
    after, conflicts = merged(table, file)
    assert conflicts == []
    assert after == [
        Column("a", "bigint"),
        Column("b", "double"),
        Column("gone", "string"),
        Column("in", "struct<x:bigint,y:decimal(9,2),z:map<string,int>>"),
        Column("new", "date"),
    ]
    assert merged(after, file) == (after, [])


def test_columns_that_do_not_fit_are_named() -> None:
    table = [Column("a", "int"), Column("b", "struct<x:int>"), Column("c", "string")]
    file = [Column("a", "string"), Column("b", "struct<x:string>"), Column("c", "string")]
    assert merged(table, file)[1] == ["a", "b"]
