"""Forms of dates and times."""

from __future__ import annotations

import pytest

from sluiceway.connectors.cdc.temporal import (
    LONG_MAX,
    civil_from_days,
    date_form,
    days_from_civil,
    epoch_micros,
    iso_date,
    time_form,
    timestamp_form,
)


@pytest.mark.parametrize(
    ("date", "days"), [((1970, 1, 1), 0), ((2024, 2, 29), 19782), ((-43, 3, 15), -735160), ((1, 1, 1), -719162)]
)
def test_days_of_dates_and_back(date: tuple[int, int, int], days: int) -> None:
    assert days_from_civil(*date) == days
    assert civil_from_days(days) == date


def test_years_have_a_sign_where_java_prints_one() -> None:
    assert [iso_date(days_from_civil(year, 1, 2)) for year in (5, 2024, 12345, -43)] == [
        "0005-01-02",
        "2024-01-02",
        "+12345-01-02",
        "-0043-01-02",
    ]


def test_microseconds_saturate_and_wrap_as_in_java() -> None:
    assert epoch_micros(9_224_318_015_999, 999_999) == -9223372036853775810
    assert epoch_micros(-1, 999_999) == -1


def test_precision_decides_in_adaptive_mode() -> None:
    assert time_form("adaptive", 3).convert(43_200_500_000) == 43_200_500
    assert time_form("adaptive", 6).convert(43_200_500_000) == 43_200_500_000
    assert timestamp_form("adaptive", 3).schema.name == "io.debezium.time.Timestamp"
    assert timestamp_form("adaptive", 6).schema.name == "io.debezium.time.MicroTimestamp"


def test_iso_strings_end_with_z() -> None:
    assert date_form("isostring").convert(19782) == "2024-02-29Z"
    assert time_form("isostring", 6).convert(43_200_500_000) == "12:00:00.5Z"
    assert time_form("isostring", 6).convert(86_400_000_000) == "00:00:00Z"


def test_nanoseconds_out_of_range_are_null_or_wrap() -> None:
    assert timestamp_form("nanoseconds", 6).convert(LONG_MAX // 1_000_000_000 + 1, 0) is None
    assert isinstance(timestamp_form("nanoseconds", 6, wrap_nanos=True).convert(LONG_MAX // 1_000_000_000 + 1, 0), int)
