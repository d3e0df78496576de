from __future__ import annotations

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluiceway.config.parsing import Type as ConfigType
from sluiceway.config.parsing import parse_value
from sluiceway.errors import ConfigError
from sluiceway.java.numbers import (
    _java_text,
    decimal_text,
    double_to_integer,
    java_double,
    java_float,
    parse_decimal,
    parse_double,
    parse_float32,
    parse_integer,
    to_float32,
    whole_number,
)
from sluiceway.storage.codec import decode_config_record, decode_status_record

# Every expectation here is JDK 17's.


@pytest.mark.parametrize(
    ("text", "bits", "value"),
    [
        ("127", 8, 127),
        ("-128", 8, -128),
        ("+5", 16, 5),
        ("00012", 32, 12),
        ("1\u0663", 64, 13),
        ("-9223372036854775808", 64, -(2**63)),
    ],
)
def test_integers_are_read_strictly_but_in_any_script(text: str, bits: int, value: int) -> None:
    assert parse_integer(text, bits) == value


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("128", 8),
        ("-129", 8),
        ("2147483648", 32),
        ("9223372036854775808", 64),
        ("", 8),
        ("+", 8),
        ("+-1", 8),
        (" 1", 32),
        ("1 ", 32),
        ("1_0", 32),
        ("1.0", 64),
        ("1e3", 64),
        ("\u00b2", 8),
        ("9" * 5000, 64),
    ],
)
def test_what_is_no_integer_of_the_width_is_refused(text: str, bits: int) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (the text is Java's own affair)
        parse_integer(text, bits)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1.0),
        (" 1.5\t", 1.5),
        ("1f", 1.0),
        ("1D", 1.0),
        (".5", 0.5),
        ("5.", 5.0),
        ("1e3", 1000.0),
        ("-0", -0.0),
        ("0x1p3", 8.0),
        ("0x1.8P1d", 3.0),
        ("0x.8p1", 1.0),
        ("Infinity", math.inf),
        ("-Infinity", -math.inf),
        ("1e400", math.inf),
        ("1e-400", 0.0),
    ],
)
def test_doubles_are_read_as_in_java(text: str, value: float) -> None:
    assert repr(parse_double(text)) == repr(value)


def test_nan_is_read() -> None:
    assert math.isnan(parse_double("NaN"))
    assert math.isnan(parse_float32("-NaN"))


@pytest.mark.parametrize("text", ["", " ", "nan", "inf", "infinity", "1_0", "0x1", "1e", "e1", ".", "\u0663", "\u00a01", "1ff"])
def test_what_is_no_double_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        parse_double(text)


def test_floats_are_rounded_once() -> None:
    # By way of a double it would be rounded down to the even float: 1 + 2**-24 is a tie, and this is a little more.
    assert parse_float32("1.000000059604644775390625000000001") == 1 + 2**-23
    assert parse_float32("1.000000059604644775390625") == 1.0
    assert parse_float32("3.4028236e38") == math.inf


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (5e-324, "4.9E-324"),
        (1e-323, "1.0E-323"),
        (1e23, "9.999999999999999E22"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (5373155653104047000.0, "5.3731556531040471E18"),
        (3.16615e20, "3.1661500000000003E20"),
    ],
)
def test_doubles_print_as_in_java(value: float, text: str) -> None:
    assert java_double(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.10000000149011612, "0.1"),
        (1.5, "1.5"),
        (3.4028234663852886e38, "3.4028235E38"),
        (1e10, "1.0E10"),
        (1.1754943508222875e-38, "1.17549435E-38"),
        (1.401298464324817e-45, "1.4E-45"),
        (516458176.0, "5.16458176E8"),
        (math.inf, "Infinity"),
        (math.nan, "NaN"),
        (-0.0, "-0.0"),
        (100.0, "100.0"),
        (0.0010000000474974513, "0.001"),
    ],
)
def test_floats_print_as_in_java(value: float, text: str) -> None:
    assert java_float(value) == text


@given(st.floats(allow_nan=False))
def test_a_printed_double_reads_back(value: float) -> None:
    assert repr(parse_double(java_double(value))) == repr(value)


@given(st.floats(width=32, allow_nan=False))
def test_a_printed_float_reads_back(value: float) -> None:
    assert repr(parse_float32(java_float(value))) == repr(value)


@pytest.mark.parametrize(
    ("value", "bits", "whole"),
    [
        (1e10, 32, 2**31 - 1),
        (-1e10, 32, -(2**31)),
        (1e10, 8, -1),
        (1e10, 16, -1),
        (-1e10, 8, 0),
        (300.7, 8, 44),
        (1e19, 64, 2**63 - 1),
        (-1e19, 64, -(2**63)),
        (math.nan, 64, 0),
        (math.inf, 16, -1),
        (-2.9, 32, -2),
    ],
)
def test_doubles_are_cast_as_in_java(value: float, bits: int, whole: int) -> None:
    assert double_to_integer(value, bits) == whole


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("1.50", "1.50"),
        ("5e-10", "5E-10"),
        ("1e2", "1E+2"),
        ("-0.00", "0.00"),
        ("+.5", "0.5"),
        ("5.", "5"),
        ("0e-9", "0E-9"),
        ("\u0661", "1"),
        ("0.000001", "0.000001"),
        ("0.0000001", "1E-7"),
        ("9" * 5000, "9" * 5000),
    ],
)
def test_decimals_keep_digits_and_scale(text: str, printed: str) -> None:
    assert decimal_text(parse_decimal(text)) == printed


@pytest.mark.parametrize("text", ["", " 1", "NaN", "1e", "+", ".", "1_0", "0x1", "1e99999999999", "--1"])
def test_what_is_no_decimal_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        parse_decimal(text)


@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_a_printed_decimal_reads_back(value: Decimal) -> None:
    again = parse_decimal(decimal_text(value))
    assert again == value
    assert again.as_tuple().exponent == value.as_tuple().exponent


def test_sums_that_overflow_in_java_do_so_here() -> None:
    assert java_float(6.30466039772798e25) == "6.3046603E25"  # 6.3046604E25 is nearer


@given(st.floats(min_value=to_float32(1e-3), max_value=1e7, width=32, exclude_max=True))
def test_usual_floats_have_the_digits_of_the_general_algorithm(value: float) -> None:
    assert java_float(value) == _java_text(value, 24)
    assert java_float(-value) == _java_text(-value, 24)


@pytest.mark.parametrize(
    ("text", "number"), [("0", 0), ("17", 17), ("٣", 3), ("²", None), ("", None), ("-1", None), ("1 ", None)]
)
def test_whole_numbers(text: str, number: int | None) -> None:
    assert whole_number(text) == number


def test_more_digits_than_python_takes_are_no_number() -> None:
    digits = "9" * 5000
    assert whole_number(digits) is None
    assert decode_config_record(f"task-c-{digits}".encode(), b'{"properties": {}}') is None
    assert decode_status_record(f"status-task-c-{digits}".encode(), b"{}") is None
    with pytest.raises(ConfigError, match="Not a number of type INT"):
        parse_value("tasks.max", digits, ConfigType.INT)
