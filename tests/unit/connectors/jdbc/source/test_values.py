"""The conversion of a column's values."""

from __future__ import annotations

import datetime as dt

import pytest

from sluiceway.connectors.jdbc.columns import Granularity, Mapping
from sluiceway.connectors.jdbc.dialects.sqlite import SqliteDialect
from sluiceway.connectors.jdbc.dialects.values import UTC
from sluiceway.connectors.jdbc.source.values import converter

MOMENT = "1970-01-01 00:00:01.000002"


@pytest.mark.parametrize(
    ("granularity", "expected"),
    [
        (Granularity.CONNECT_LOGICAL, dt.datetime(1970, 1, 1, 0, 0, 1, 2, UTC)),
        (Granularity.MICROS_LONG, 1_000_002),
        (Granularity.MICROS_STRING, "1000002"),
        (Granularity.MICROS_ISO, "1970-01-01T00:00:01.000002"),
        (Granularity.NANOS_LONG, 1_000_002_000),
        (Granularity.NANOS_STRING, "1000002000"),
        (Granularity.NANOS_ISO, "1970-01-01T00:00:01.000002000"),
    ],
)
def test_a_timestamp_has_the_unit_of_its_granularity(granularity: Granularity, expected: object) -> None:
    dialect = SqliteDialect()
    convert = converter(dialect, dialect.parse_type("timestamp"), Mapping(granularity=granularity), UTC)
    assert convert is not None
    assert convert(MOMENT) == expected
