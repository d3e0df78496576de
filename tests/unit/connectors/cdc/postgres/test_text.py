"""PostgreSQL's text format."""

from __future__ import annotations

import pytest

from sluiceway.connectors.cdc.postgres import text


def test_dates_before_christ_and_infinity() -> None:
    assert text.parse_date("0044-03-15 BC") == -735160
    assert text.parse_date("infinity") == 2146033979


def test_snapshot_dates_are_those_of_javas_calendar() -> None:
    assert text.parse_snapshot_date("0044-03-15 BC") == -703383
    assert text.parse_snapshot_date("1582-10-10") == -141422
    assert text.parse_snapshot_date("0001-01-01") == -719162


@pytest.mark.parametrize(
    ("zoned", "utc"),
    [("23:59:59.999999+02", "21:59:59.999999Z"), ("24:00:00+00", "24:00:00Z"), ("00:00:00-12", "12:00:00Z")],
)
def test_times_with_zone_are_converted_to_utc(zoned: str, utc: str) -> None:
    assert text.zoned_time(zoned) == utc


def test_timestamps_with_zone_and_before_christ() -> None:
    assert text.parse_timestamp("2024-02-29 12:34:56.123456+02") == (1709202896, 123456)
    assert text.parse_timestamp("0044-03-15 10:00:00 BC") == (-63517788000, 0)
    assert text.parse_timestamp("1969-12-31 23:59:59.999") == (-1, 999000)


def test_intervals_keep_the_sign_of_each_part() -> None:
    assert text.parse_interval("1 year 2 mons -3 days +04:05:06.789") == text.Interval(1, 2, -3, 14_706_789_000)
    assert text.parse_interval("-00:00:01").micros == -1_000_000
    assert text.parse_interval("1 day").days == 1


def test_arrays_with_quotes_nulls_dimensions_and_bounds() -> None:
    assert text.parse_array('{a,NULL,"NULL","x\\"y,{}"}') == ["a", None, "NULL", 'x"y,{}']
    assert text.parse_array("[0:1]={{1,2},{3,4}}") == [["1", "2"], ["3", "4"]]
    assert text.parse_array("{}") == []
    assert (text.parse_array("1 2 30"), text.parse_array("")) == (["1", "2", "30"], [])


def test_bits_are_little_endian_without_trailing_zero_bytes() -> None:
    assert text.parse_bits("0000000101") == b"\x05"
    assert text.parse_bits("00000000") == b""
    assert text.parse_bits("100000000") == b"\x00\x01"


def test_hstore_pairs() -> None:
    assert text.parse_hstore('"a"=>"1", "b\\"c"=>NULL') == {"a": "1", 'b"c': None}


def test_boxes_become_closed_rings() -> None:
    assert text.box_ring("(1,1),(0,0)") == [(1, 1), (1, 0), (0, 0), (0, 1), (1, 1)]
