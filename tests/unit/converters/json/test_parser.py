"""Parsing JSON; the expected nodes are those of Jackson, with which Connect parses."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from sluiceway.converters.json.parser import MISSING, parse, parse_schemaless
from sluiceway.errors import DataError


@pytest.mark.parametrize(
    ("data", "node"),
    [
        (b"01", 1),
        (b"-01", -1),
        (b"00.5", Decimal("0.5")),
        (b"[01,-007.5,1e05, 100]", [1, Decimal("-7.5"), Decimal("1e5"), 100]),
        (b'{"a":"01 -00","b":007}', {"a": "01 -00", "b": 7}),
        (b'["\\"01",01]', ['"01', 1]),
    ],
)
def test_leading_zeros_are_dropped_outside_strings(data: bytes, node: Any) -> None:
    assert parse(data) == node


@pytest.mark.parametrize("data", [b"1 x", b"1\n2", b"true,", b"null]", b'{"a":1}x', b"[1]]", b'"a"b', b"1 \xff", b"{}\xff"])
def test_text_after_the_first_value_is_ignored(data: bytes) -> None:
    assert parse(data) in (1, True, None, {"a": 1}, [1], "a", {})


@pytest.mark.parametrize(
    "data",
    [
        b"1x",
        b"1,",
        b"1]",
        b"01x",
        b"truex",
        b"nullx",
        b"true_",
        b"1\x0b",
        b"1.",
        b".5",
        b"+1",
        b"-",
        b"1e",
        b"tru",
        b"NaN",
        b"-Infinity",
        b"[1,]",
        b"{'a':1}",
        b"{a:1}",
        b"// c\n1",
        b'"\t"',
        b'"\xff"',
        b'["\xed\xa0\x80"]',
        b"1" * 1001,
        b"0." + b"1" * 999,
        rb'{"\ud83d":1}',
        rb'[{"a":{"\ud83da":1}}]',
        rb'{"\ude00":1}',
        b"1e99999999999",
        b"[" * 100000,
    ],
)
def test_invalid_json_is_refused(data: bytes) -> None:
    with pytest.raises(DataError, match=r"^Converting byte\[\] to Kafka Connect data failed due to serialization error: $"):
        parse(data)


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"]
)
def test_any_unicode_encoding_is_detected(encoding: str) -> None:
    assert parse('{"a":"ü😀"}'.encode(encoding)) == {"a": "ü😀"}


@pytest.mark.parametrize("blank", [b"", b" ", b" \r\n\t", b"\xef\xbb\xbf"])
def test_a_blank_document_is_missing(blank: bytes) -> None:
    assert parse(blank) is MISSING


def test_an_unpaired_surrogate_is_valid_in_a_string_but_not_in_a_field_name() -> None:
    assert parse(rb'{"\ud83d\ude00":"\ud83d"}') == {"\U0001f600": "\ud83d"}


def test_numbers_keep_all_their_digits() -> None:
    assert repr(parse(b"[1.10, 1e2, -0.0, 123456789012345678901234567890, 12345678901234567890.5]")) == (
        "[Decimal('1.10'), Decimal('1E+2'), Decimal('0.0'), 123456789012345678901234567890, Decimal('12345678901234567890.5')]"
    )
    assert parse(b"1" + b"0" * 999) == 10**999


@pytest.mark.parametrize(
    "data", [b"9223372036854775808", b"[-9223372036854775809]", b"-0.0", b'{"a":-0}', b"[1, -0.00]", b"-0e5"]
)
def test_numbers_that_orjson_changes_are_left_to_the_exact_parser(data: bytes) -> None:
    with pytest.raises(ValueError, match="orjson"):
        parse_schemaless(data)


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b'{"a":[1,-0.5,2.5e3,"2024-01-05","",null,true]}', {"a": [1, -0.5, 2500.0, "2024-01-05", "", None, True]}),
        (b'"12345678901234567890 -0"', "12345678901234567890 -0"),
        (b"123456789012345678", 123456789012345678),
    ],
)
def test_common_values_are_parsed_fast(data: bytes, value: Any) -> None:
    assert repr(parse_schemaless(data)) == repr(value)
