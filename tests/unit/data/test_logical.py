from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluiceway.data import BYTES_SCHEMA
from sluiceway.data.logical import (
    DATE,
    FROM_LOGICAL,
    TIME,
    TIMESTAMP,
    TO_LOGICAL,
    date_schema,
    decimal_from_bytes,
    decimal_schema,
    decimal_to_bytes,
    time_schema,
    timestamp_schema,
)
from sluiceway.data.schema import Schema
from sluiceway.errors import DataError

UTC = dt.timezone.utc


@pytest.mark.parametrize(
    ("schema", "value", "primitive"),
    [
        (decimal_schema(2), Decimal("1.56"), b"\x00\x9c"),
        (decimal_schema(0), Decimal(-128), b"\x80"),
        (decimal_schema(0), Decimal(128), b"\x00\x80"),
        (decimal_schema(-2), Decimal("1E+2"), b"\x01"),
        (decimal_schema(3), Decimal("0.000"), b"\x00"),
        (date_schema(), dt.date(1970, 1, 11), 10),
        (date_schema(), dt.date(1969, 12, 31), -1),
        (time_schema(), dt.time(0, 0, 1, 2000), 1002),
        (timestamp_schema(), dt.datetime(1970, 1, 1, 0, 0, 1, 5000, tzinfo=UTC), 1005),
        (timestamp_schema(), dt.datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=UTC), -1),
    ],
)
def test_logical_values_are_kept_as_connect_keeps_them(schema: Schema, value: Any, primitive: Any) -> None:
    assert schema.name is not None
    assert FROM_LOGICAL[schema.name](schema, value) == primitive
    assert TO_LOGICAL[schema.name](schema, primitive) == value


@given(st.integers(-(10**60), 10**60), st.integers(-5, 40))
def test_decimals_of_any_size_come_back_exactly(unscaled: int, scale: int) -> None:
    schema = decimal_schema(scale)
    encoded = unscaled.to_bytes(40, "big", signed=True)
    value = decimal_from_bytes(schema, encoded)
    assert int.from_bytes(decimal_to_bytes(schema, value), "big", signed=True) == unscaled
    assert value.as_tuple().exponent == -scale


@pytest.mark.parametrize(
    ("schema", "value", "primitive"),
    [
        (date_schema(), 10**8, 10**8),
        (timestamp_schema(), 2**63 - 1, 2**63 - 1),
        (time_schema(), 86400000, 86400000),
        (decimal_schema(0), (1 << 20000).to_bytes(2502, "big"), (1 << 20000).to_bytes(2501, "big")),
    ],
)
def test_timestamps_outside_pythons_range_round_trip(schema: Schema, value: Any, primitive: Any) -> None:
    assert schema.name is not None
    assert FROM_LOGICAL[schema.name](schema, TO_LOGICAL[schema.name](schema, value)) == primitive


def test_dates_times_and_timestamps_are_interchangeable() -> None:
    midnight = dt.datetime(2024, 1, 1, tzinfo=UTC)
    assert FROM_LOGICAL[DATE](date_schema(), midnight) == 19723
    assert FROM_LOGICAL[TIMESTAMP](timestamp_schema(), dt.date(2024, 1, 1)) == 19723 * 86400000
    assert FROM_LOGICAL[TIME](time_schema(), dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)) == 1000


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (decimal_schema(2), Decimal("1.5")),
        (decimal_schema(2), Decimal("NaN")),
        (decimal_schema(2), 1.5),
        (date_schema(), dt.datetime(2024, 1, 1, 1, tzinfo=UTC)),
        (date_schema(), 5),
        (time_schema(), 5),
        (time_schema(), dt.date(2024, 1, 1)),
        (timestamp_schema(), "x"),
    ],
)
def test_a_value_of_another_kind_is_refused(schema: Schema, value: Any) -> None:
    assert schema.name is not None
    with pytest.raises(DataError):
        FROM_LOGICAL[schema.name](schema, value)


@pytest.mark.parametrize("value", [-1, 86400001])
def test_a_time_that_no_day_has_is_refused(value: int) -> None:
    with pytest.raises(DataError, match="greater than 0 and less than 86400000"):
        TO_LOGICAL[TIME](time_schema(), value)


def test_a_decimal_schema_without_a_scale_is_refused() -> None:
    with pytest.raises(DataError, match="scale parameter not found"):
        decimal_to_bytes(BYTES_SCHEMA, Decimal(1))
