from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from sluiceway.converters.string_converter import StringConverter
from sluiceway.data import FLOAT32_SCHEMA, OPTIONAL_STRING_SCHEMA, STRING_SCHEMA, Schema, Struct
from sluiceway.errors import SerializationError
from sluiceway.java.numbers import to_float32


def converter(**config: str) -> StringConverter:
    made = StringConverter()
    made.configure({key.replace("_", "."): value for key, value in config.items()}, is_key=False)
    return made


@pytest.mark.parametrize(
    ("value", "data"),
    [
        ("foo", b"foo"),
        ("ü", b"\xc3\xbc"),
        ("", b""),
        (None, None),
        (1, b"1"),
        (True, b"true"),
        (1e10, b"1.0E10"),
        (Struct(Schema.struct({"y": STRING_SCHEMA}), {"y": "1"}), b"Struct{y=1}"),
        ({"a": 1}, b"{a=1}"),
        ("\ud800", b"?"),
        (Decimal("5E+3"), b"5E+3"),
        ([1, None], b"[1, null]"),
    ],
)
def test_values_are_written_as_text_by_both_methods(value: Any, data: bytes | None) -> None:
    assert converter().from_connect_data("t", None, value) == data
    assert converter().encoder("t", STRING_SCHEMA)(value) == data


def test_floats_of_32_bits_are_written_with_the_digits_that_they_need() -> None:
    tenth = to_float32(0.1)
    assert converter().from_connect_data("t", FLOAT32_SCHEMA, tenth) == b"0.1"
    assert converter().from_connect_data("t", Schema.array(FLOAT32_SCHEMA), [tenth]) == b"[0.1]"
    assert converter().from_connect_data("t", None, tenth) == b"0.10000000149011612"


@pytest.mark.parametrize("data", [b"foo", b"", b"\xc3\xbc", b"bad\xff", b"\xe2\x82", b"\xf4\x90\x80\x80"])
def test_text_is_read_as_an_optional_string_by_both_methods(data: bytes) -> None:
    expected = (OPTIONAL_STRING_SCHEMA, data.decode("utf-8", "replace"))
    assert converter().to_connect_data("t", data) == expected
    assert converter().decoder("t")(data) == expected


def test_an_unpaired_surrogate_in_utf_8_is_one_replacement_character_like_in_java() -> None:
    assert converter().to_connect_data("t", b"a\xed\xa0\x80b").value == "a\ufffdb"


def test_null_is_an_optional_string_that_is_null() -> None:
    assert converter().to_connect_data("t", None) == (OPTIONAL_STRING_SCHEMA, None)
    assert converter().decoder("t")(None) == (OPTIONAL_STRING_SCHEMA, None)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("ISO-8859-1", b"\xfc"),
        ("latin1", b"\xfc"),
        ("windows-1252", b"\xfc"),
        ("utf8", b"\xc3\xbc"),
        ("UTF-16", b"\xfe\xff\0\xfc"),
        ("UTF-16LE", b"\xfc\0"),
        ("utf-16be", b"\0\xfc"),
        ("UTF-32", b"\0\0\0\xfc"),
        (" US-ASCII ", b"?"),
    ],
)
def test_the_character_set_can_be_chosen_by_javas_names(name: str, data: bytes) -> None:
    made = converter(converter_encoding=name)
    assert made.encoder("t", None)("ü") == data
    assert made.decoder("t")(data)[1] == ("?" if data == b"?" else "ü")


def test_utf_16_is_read_by_its_byte_order_mark_or_as_big_endian() -> None:
    decode = converter(converter_encoding="UTF-16").decoder("t")
    assert [decode(data)[1] for data in (b"\xff\xfea\0", b"\xfe\xff\0a", b"\0a", b"")] == ["a", "a", "a", ""]
    assert converter(converter_encoding="UTF-16").encoder("t", None)("") == b""


@pytest.mark.parametrize("name", ["nope", "base64", "idna", "utf-7", "utf-8-sig", "UTF_8", "utf 8", "x!", "", "unicode_escape"])
def test_character_sets_unknown_to_java_are_refused(name: str) -> None:
    with pytest.raises(SerializationError, match=f"^Unsupported encoding {name}$"):
        converter(converter_encoding=name)
