from __future__ import annotations

from typing import Any

import pytest
from sluiceway.api import NULL
from sluiceway.converters.simple_header_converter import SimpleHeaderConverter
from sluiceway.converters.string_converter import StringConverter
from sluiceway.data import OPTIONAL_STRING_SCHEMA, STRING_SCHEMA, Schema, Struct
from sluiceway.errors import ConfigError


def converter(**config: str) -> StringConverter:
    made = StringConverter()
    made.configure({key.replace("_", "."): value for key, value in config.items()}, is_key=False)
    return made


@pytest.mark.parametrize(
    ("value", "data"),
    [
        ("foo", b"foo"), ("ü", b"\xc3\xbc"), ("", b""), (None, None), (1, b"1"), (True, b"true"), (1e10, b"1.0E10"),
        (Struct(Schema.struct({"y": STRING_SCHEMA}), {"y": "1"}), b"Struct{y=1}"), ({"a": 1}, b"{a=1}"), ("\ud800", b"?"),
    ],
)  # fmt: skip
def test_values_are_written_as_text_by_both_ways(value: Any, data: bytes | None) -> None:
    assert converter().from_connect_data("t", None, value) == data
    assert converter().encoder("t", STRING_SCHEMA)(value) == data


@pytest.mark.parametrize("data", [b"foo", b"", b"\xc3\xbc", b"bad\xff"])
def test_text_is_read_as_an_optional_string_by_both_ways(data: bytes) -> None:
    expected = (OPTIONAL_STRING_SCHEMA, data.decode("utf-8", "replace"))
    assert converter().to_connect_data("t", data) == expected
    assert converter().decoder("t")(data) == expected


def test_null_is_null() -> None:
    assert converter().to_connect_data("t", None) == NULL
    assert converter().decoder("t")(None) == NULL


def test_the_character_set_can_be_chosen() -> None:
    latin = converter(converter_encoding="ISO-8859-1")
    assert latin.encoder("t", None)("ü") == b"\xfc"
    assert latin.decoder("t")(b"\xfc")[1] == "ü"


@pytest.mark.parametrize("name", ["nope", "base64"])
def test_what_is_not_a_character_set_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=f"Invalid value {name} for configuration converter.encoding"):
        converter(converter_encoding=name)


def test_headers_are_text() -> None:
    headers = SimpleHeaderConverter()
    assert headers.from_connect_header("t", "k", None, 1.5) == b"1.5"
    assert headers.from_connect_header("t", "k", None, None) is None
    assert headers.to_connect_header("t", "k", b"x") == (STRING_SCHEMA, "x")
    assert headers.to_connect_header("t", "k", None) == NULL
