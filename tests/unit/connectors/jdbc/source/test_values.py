"""Converters of columns' values."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluiceway.connectors.jdbc.columns import DEFAULT_MAPPING, ColumnType, Granularity, Kind
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


MOMENT = dt.datetime(2026, 11, 28, 12, 30, 1, 234567, tzinfo=dt.timezone.utc)
MICROS = 1_795_869_001_234_567


@pytest.mark.parametrize(
    ("granularity", "expected"),
    [
        (Granularity.CONNECT_LOGICAL, MOMENT),
        (Granularity.MICROS_LONG, MICROS),
        (Granularity.MICROS_STRING, str(MICROS)),
        (Granularity.MICROS_ISO, "2026-11-28T12:30:01.234567"),
        (Granularity.NANOS_LONG, MICROS * 1000),
        (Granularity.NANOS_STRING, str(MICROS * 1000)),
        (Granularity.NANOS_ISO, "2026-11-28T12:30:01.234567000"),
    ],
)
def test_a_timestamp_has_the_granularity_that_is_asked_for(granularity: Granularity, expected: object) -> None:
    mapping = replace(DEFAULT_MAPPING, granularity=granularity)
    convert = converter(dialect_of("postgresql"), ColumnType(Kind.TIMESTAMP, zoned=True), mapping, dt.timezone.utc)
    assert (MOMENT if convert is None else convert(MOMENT)) == expected


def test_every_granularity_is_tried() -> None:
    assert len(Granularity) == 7
