from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluiceway.api import NULL, SchemaAndValue
from sluiceway.converters.simple_header_converter import SimpleHeaderConverter
from sluiceway.data import FLOAT32_SCHEMA, INT8_SCHEMA, STRING_SCHEMA, Schema, date_schema

CONVERTER = SimpleHeaderConverter()


@pytest.mark.parametrize(
    ("schema", "value", "data"),
    [
        (None, None, None),
        (STRING_SCHEMA, "x", b"x"),
        (None, 5, b"5"),
        (None, ["x", 1.0], b'["x",1.0]'),
        (None, b"x", b"eA=="),
        (FLOAT32_SCHEMA, 0.10000000149011612, b"0.1"),
        (date_schema(), dt.date(2024, 2, 29), b"2024-02-29"),
        (None, "half \ud800", b"half ?"),
        (None, "\u00e9", "\u00e9".encode()),
    ],
)
def test_values_are_written_as_text(schema: Schema | None, value: Any, data: bytes | None) -> None:
    assert CONVERTER.from_connect_header("t", "k", schema, value) == data


@pytest.mark.parametrize(
    ("data", "schema", "value"),
    [
        (None, None, None),
        (b"", STRING_SCHEMA, ""),
        (b"1", INT8_SCHEMA, 1),
        (b"a b", STRING_SCHEMA, "a b"),
        (b"[1,2]", Schema.array(INT8_SCHEMA), [1, 2]),
        (b"\xff", STRING_SCHEMA, "\ufffd"),
        (b"2024-02-29", date_schema(), dt.date(2024, 2, 29)),
    ],
)
def test_the_type_of_text_is_inferred(data: bytes | None, schema: Schema | None, value: Any) -> None:
    assert CONVERTER.to_connect_header("t", "k", data) == SchemaAndValue(schema, value)


@pytest.mark.parametrize("data", [b"null", b" null", b"\tnull\n"])
def test_the_text_null_is_null(data: bytes) -> None:
    assert CONVERTER.to_connect_header("t", "k", data) is None


def test_a_null_header_is_null() -> None:
    assert CONVERTER.to_connect_header("t", "k", None) is NULL


@given(st.binary(max_size=40) | st.text(alphabet='[]{}":,\\ 0123456789-.eTZntrufals', max_size=25).map(str.encode))
def test_any_header_bytes_can_be_read(data: bytes) -> None:
    schema, value = CONVERTER.to_connect_header("t", "k", data) or NULL
    CONVERTER.from_connect_header("t", "k", schema, value)


def test_a_header_nested_too_deeply_stays_bytes_or_text() -> None:
    schema, value = CONVERTER.to_connect_header("t", "k", b"[" * 100_000) or NULL
    assert value in (b"[" * 100_000, "[" * 100_000)
    assert schema is not None
