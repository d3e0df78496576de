"""Arrow schemas of DataFrames, with each signature that PySpark's function has had."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types

from sluiceway.connectors.spark.arrow_schema import arrow_schema

ROWS = types.StructType(
    [
        types.StructField("at", types.TimestampType()),
        types.StructField("local", types.TimestampNTZType()),
        types.StructField("many", types.ArrayType(types.TimestampType())),
        types.StructField("id", types.LongType(), nullable=False),
    ]
)


def test_moments_are_in_utc() -> None:
    found = arrow_schema(ROWS)
    assert found.field("at").type == pa.timestamp("us", "UTC")
    assert found.field("local").type == pa.timestamp("us")
    assert found.field("many").type.value_type == pa.timestamp("us", "UTC")
    assert not found.field("id").nullable


def test_the_zone_is_passed_where_pyspark_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def of_4_2(schema: Any, *, timezone: str | None = None, prefers_large_types: bool = False) -> pa.Schema:
        assert timezone is not None
        return pa.schema([pa.field(each.name, pa.timestamp("us", timezone)) for each in schema])

    monkeypatch.setattr("pyspark.sql.pandas.types.to_arrow_schema", of_4_2)
    assert arrow_schema(types.StructType(ROWS.fields[:1])) == pa.schema([("at", pa.timestamp("us", "UTC"))])
