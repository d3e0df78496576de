from __future__ import annotations

import datetime as dt
import pickle
import re
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluiceway.data import SimpleDateFormat

# Every expectation here was printed or read by JDK 17, in UTC and en_US.
DAY = 86_400_000
MOMENT = 1650000000123  # 2022-04-15T05:20:00.123Z
ISO = "yyyy-MM-dd'T'HH:mm:ss.SSSX"


@pytest.mark.parametrize(
    ("pattern", "millis", "text"),
    [
        (ISO, MOMENT, "2022-04-15T05:20:00.123Z"),
        ("GGGG G yy yyyy YYYY MMM MMMM LLLL", MOMENT, "AD AD 22 2022 2022 Apr April April"),
        ("w W D d F E EEEE u", MOMENT, "16 3 105 15 3 Fri Friday 5"),
        ("a H k K h m s S SSSS", MOMENT, "AM 5 5 5 5 20 0 123 0123"),
        ("k K h a", 0, "24 0 12 AM"),
        ("z zzzz Z X XX XXX", 0, "UTC Coordinated Universal Time +0000 Z Z Z"),
        ("yyyyMMdd", -62135596800000, "00010103"),
        ("yyyyMMdd", -12219292800000, "15821015"),
        ("yyyyMMdd", -12219292800001, "15821004"),
        ("G yyyy", -62200000000000, "BC 0003"),
        ("yyyyyyy y", MOMENT, "0002022 2022"),
        ("YYYY-'W'ww-u", 1640995200000 - DAY, "2022-W01-5"),
        ("YYYY w", 1672444800000, "2022 53"),  # a Saturday: the next week starts with the year
        ("hh 'o''clock' a", MOMENT, "05 o'clock AM"),
        ("''yyyy''", MOMENT, "'2022'"),
        ("", MOMENT, ""),
        ("yyyy", 253402300800000, "10000"),
    ],
)
def test_timestamps_are_formatted_as_in_java(pattern: str, millis: int, text: str) -> None:
    assert SimpleDateFormat(pattern).format(millis) == text


@pytest.mark.parametrize(
    ("pattern", "text", "millis"),
    [
        (ISO, "2022-04-15T05:20:00.123Z", MOMENT),
        (ISO, "2022-04-15T05:20:00.123+02", MOMENT - 7_200_000),
        ("yyyyMMdd", "20230229", 1677628800000),  # 1 March
        ("yyyy-MM-dd", "2023-13-01", 1704067200000),  # January of the next year
        ("yyyyMMdd", "2024-02-29", 1701475200000),  # -0 and 2-2: what Java makes of it
        ("yyyy-MM-dd", "2022-04-15 and more", 1649980800000),
        ("yyyy-MM-dd", " 2022- 4-15", 1649980800000),
        ("yyyy", "1E3", -30609792000000),
        ("yyyy", "NaN", -62167392000000),
        ("MMMM yyyy", "APRIL 2022", 1648771200000),
        ("yyyy-DDD", "2022-105", 1649980800000),
        ("YYYY-'W'ww-u", "2022-W16-5", 1649980800000),
        ("yyyy F E MM", "2022 3 Fri 04", 1649980800000),
        ("h a", "12 AM", 0),
        ("h a", "12 PM", 43_200_000),
        ("z", "EST", 18_000_000),
        ("z", "GMT+1:30", -5_400_000),
        ("Z", "-0130", 5_400_000),
        ("yyyyMMdd", "15821010", -12218860800000),  # a day that never was
        ("G yyyy", "BC 0001", -62167392000000),
        ("E", "Mon", 345_600_000),
    ],
)
def test_texts_are_parsed_as_leniently_as_in_java(pattern: str, text: str, millis: int) -> None:
    assert SimpleDateFormat(pattern).parse(text) == millis


@pytest.mark.parametrize(
    ("pattern", "text"),
    [("yyyy", ""), ("yyyy", "x"), ("yyyy-MM", "2022/04"), ("MMM", "Foo"), ("X", "0"), ("XXX", "+0100"), ("z", "Z"), ("", "x")],
)
def test_a_text_that_starts_otherwise_is_refused(pattern: str, text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f'Unparseable date: "{text}"')):
        SimpleDateFormat(pattern).parse(text)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("yyyyb", "Illegal pattern character 'b'"),
        ("yyyy'x", "Unterminated quote"),
        ("XXXX", "invalid ISO 8601 format: length=4"),
    ],
)
def test_what_is_no_pattern_is_refused(pattern: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        SimpleDateFormat(pattern)


@given(st.integers(-(10**14), 10**14))
def test_what_was_printed_is_read_back(millis: int) -> None:
    for pattern in (f"G {ISO}", "G yyyy D HHmmssSSS XX", "G YYYY w E HH:mm:ss.SSS Z"):
        if "Y" in pattern and millis < -(10**13):  # before the Gregorian calendar Java's week years do not come back either
            continue
        form = SimpleDateFormat(pattern)
        assert form.parse(form.format(millis)) == millis


@given(st.integers(-(10**14), 10**14), st.integers(0, 30), st.sampled_from("0123456789-:TZE. "))
def test_strict_and_lenient_parsing_agree(millis: int, position: int, char: str) -> None:
    for pattern in (ISO, "yyyyMMddHHmmss", "d/M/yyyy H:mm", "yyyy-MM-dd'E'HH"):
        form = SimpleDateFormat(pattern)
        text = form.format(millis)
        text = text[:position] + char + text[position + 1 :]
        exact = form._strict(text) if form._strict is not None else None
        assert exact is None or exact == form._parse_leniently(text)


def test_most_texts_are_parsed_strictly() -> None:
    form = SimpleDateFormat(ISO)
    assert form._strict is not None
    assert form._strict("2022-04-15T05:20:00.123Z") == MOMENT


def test_records_of_one_second_do_not_print_alike_where_the_pattern_has_milliseconds() -> None:
    form = SimpleDateFormat("ss.SSS")
    assert [form.format(millis) for millis in (1000, 1001, 1001, 1999, 0)] == [
        "01.000",
        "01.001",
        "01.001",
        "01.999",
        "00.000",
    ]


def test_a_zone_shifts_what_is_printed_and_read() -> None:
    form = SimpleDateFormat("yyyy-MM-dd HH:mm Z", ZoneInfo("Europe/Berlin"))
    assert form.format(MOMENT) == "2022-04-15 07:20 +0200"
    plain = SimpleDateFormat("yyyy-MM-dd HH:mm", ZoneInfo("Europe/Berlin"))
    assert plain.parse("2022-04-15 07:20") == MOMENT - 123
    assert plain.parse("2022-10-30 02:30") == 1667093400000  # shown twice: winter time
    assert SimpleDateFormat("HH", dt.timezone(dt.timedelta(hours=-5))).format(0) == "19"


def test_a_format_pickles() -> None:
    assert pickle.loads(pickle.dumps(SimpleDateFormat(ISO))).format(MOMENT) == "2022-04-15T05:20:00.123Z"  # noqa: S301
