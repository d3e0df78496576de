"""Converters of columns' values."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluiceway.connectors.jdbc.columns import DEFAULT_MAPPING, ColumnType, Kind
from sluiceway.connectors.jdbc.dialects import dialect_of
from sluiceway.connectors.jdbc.source.values import converter


@pytest.mark.parametrize("database", ["sqlite", "sqlserver"])
@given(st.integers(-(10**38), 10**38), st.integers(0, 38), st.integers(0, 5))
def test_a_decimal_gets_its_columns_scale_with_every_digit(database: str, number: int, scale: int, fewer: int) -> None:
    scale_of_driver = max(scale - fewer, 0)
    given_one = Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -scale_of_driver))
    convert = converter(dialect_of(database), ColumnType(Kind.DECIMAL, 38, scale), DEFAULT_MAPPING, dt.timezone.utc)
    found = given_one if convert is None else convert(given_one)
    assert found == given_one
    assert found.as_tuple().exponent == -scale
