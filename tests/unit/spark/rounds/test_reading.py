"""Columns of a batch as a table's columns."""

from __future__ import annotations

import pyarrow as pa

from sluiceway.api import Column, ColumnBatch
from sluiceway.columns.arrays import to_array
from sluiceway.data import Schema, Struct, Type, time_schema
from sluiceway.spark.rounds.reading import _columns_of, _table_of

SCHEMA = Schema(Type.STRUCT, fields=[("id", Schema(Type.INT64)), ("city", Schema(Type.STRING, optional=True))])
VALUES = [Struct(SCHEMA, {"id": 1, "city": "a"}), Struct(SCHEMA, {"id": 2})]


def batch(schema: Schema, values: list[object]) -> ColumnBatch:
    return ColumnBatch(
        topic="t", partition=0, key=Column(None, None), value=Column(schema, to_array(schema, values)), count=len(values)
    )


def test_columns_are_the_table_of_their_records() -> None:
    assert _columns_of(batch(SCHEMA, list(VALUES))) == _table_of(SCHEMA, VALUES)


def test_defaults_need_single_records() -> None:
    schema = Schema(Type.STRUCT, fields=[("id", Schema(Type.INT64, default=3))])
    assert _columns_of(batch(schema, [Struct(schema)])) is None
    assert _table_of(schema, [Struct(schema)]).to_pylist() == [{"id": 3}]


def test_a_value_that_is_no_struct_is_one_column() -> None:
    assert _table_of(Schema(Type.STRING), ["a"]).to_pylist() == [{"value": "a"}]
    assert _columns_of(batch(Schema(Type.STRING), ["a"])) is None


def test_a_time_is_a_number_in_both_forms() -> None:
    schema = Schema(Type.STRUCT, fields=[("at", time_schema(optional=True))])
    table = _columns_of(batch(schema, [Struct(schema)]))
    assert table is None or table.schema.field("at").type == pa.int32()
