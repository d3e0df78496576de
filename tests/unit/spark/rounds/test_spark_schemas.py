"""Spark's schemas as Connect's."""

from __future__ import annotations

import pytest
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    CalendarIntervalType,
    DateType,
    DecimalType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from sluiceway.data import Schema, Type, date_schema, decimal_schema, timestamp_schema
from sluiceway.errors import ConnectError
from sluiceway.spark.rounds.spark_schemas import row_schema


def test_columns_become_fields() -> None:
    columns = StructType(
        [
            StructField("id", LongType(), False),
            StructField("small", ByteType()),
            StructField("price", DecimalType(10, 2), False),
            StructField("day", DateType(), False),
            StructField("at", TimestampType()),
            StructField("local", TimestampNTZType()),
            StructField("tags", ArrayType(StringType(), False), False),
            StructField("counts", MapType(StringType(), LongType())),
            StructField("nested", StructType([StructField("x", StringType())]), False),
        ]
    )
    optional = Schema(Type.STRING, optional=True)
    counts = Schema(Type.MAP, optional=True, key_schema=Schema(Type.STRING), value_schema=Schema(Type.INT64, optional=True))
    assert row_schema(columns, "orders") == Schema(
        Type.STRUCT,
        name="orders",
        fields=[
            ("id", Schema(Type.INT64)),
            ("small", Schema(Type.INT8, optional=True)),
            ("price", decimal_schema(2)),
            ("day", date_schema()),
            ("at", timestamp_schema(optional=True)),
            ("local", timestamp_schema(optional=True)),
            ("tags", Schema(Type.ARRAY, value_schema=Schema(Type.STRING))),
            ("counts", counts),
            ("nested", Schema(Type.STRUCT, fields=[("x", optional)])),
        ],
    )


def test_a_type_without_a_counterpart_is_refused_by_its_column() -> None:
    with pytest.raises(ConnectError, match=r"column a: column b: Spark's type interval has no counterpart"):
        row_schema(StructType([StructField("a", StructType([StructField("b", CalendarIntervalType())]))]))
