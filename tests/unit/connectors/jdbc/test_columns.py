"""The mapping of columns to fields."""

from __future__ import annotations

import pytest

from sluiceway.connectors.jdbc.columns import ColumnType, Kind, Mapping, NumericMapping, mapped


@pytest.mark.parametrize(
    ("precision", "scale", "kinds"),
    [
        (2, 0, [Kind.DECIMAL, Kind.INT8, Kind.INT8, Kind.INT8]),
        (9, 0, [Kind.DECIMAL, Kind.INT32, Kind.INT32, Kind.INT32]),
        (18, 0, [Kind.DECIMAL, Kind.INT64, Kind.INT64, Kind.INT64]),
        (19, 0, [Kind.DECIMAL] * 4),
        (10, 2, [Kind.DECIMAL, Kind.DECIMAL, Kind.FLOAT64, Kind.FLOAT64]),
        (30, 2, [Kind.DECIMAL, Kind.DECIMAL, Kind.DECIMAL, Kind.FLOAT64]),
        (None, None, [Kind.STRING, Kind.STRING, Kind.FLOAT64, Kind.FLOAT64]),
    ],
)
def test_decimals_follow_numeric_mapping(precision: int | None, scale: int | None, kinds: list[Kind]) -> None:
    column = ColumnType(Kind.DECIMAL, precision, scale)
    assert [mapped(column, Mapping(numeric=each)) for each in NumericMapping] == kinds
