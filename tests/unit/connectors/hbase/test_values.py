"""Values as the bytes of cells and back, and the columns of a config."""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluiceway.connectors.hbase.values import TYPES, Column, Encoding, columns_of, reader_of, simple_bytes
from sluiceway.data import Float32, Int16, Int32, Schema
from sluiceway.data.logical import DATE
from sluiceway.data.schema import Type
from sluiceway.errors import ConfigError, DataError

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "string": st.text(),
    "bytes": st.binary(),
    "boolean": st.booleans(),
    "int8": st.integers(-(2**7), 2**7 - 1),
    "int16": st.integers(-(2**15), 2**15 - 1),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "float32": st.floats(width=32, allow_nan=False),
    "float64": st.floats(allow_nan=False),
}


@pytest.mark.parametrize("encoding", Encoding)
@pytest.mark.parametrize("kind", TYPES)
@given(st.data())
def test_what_the_sink_writes_the_source_reads(kind: str, encoding: Encoding, data: st.DataObject) -> None:
    value = data.draw(VALUES[kind])
    written = simple_bytes(value, Schema(TYPES[kind][0]), encoding)
    assert written is not None
    assert reader_of(kind, encoding)(written) == (pytest.approx(value, rel=1e-6) if isinstance(value, float) else value)


# What org.apache.hadoop.hbase.util.Bytes of HBase 2.6.1 returns for these.
@pytest.mark.parametrize(
    ("value", "schema", "expected"),
    [
        (True, None, "ff"), (False, None, "00"), (1, None, "0000000000000001"), (-1, None, "ff" * 8), (Int16(258), None, "0102"),
        (Int32(-2), None, "fffffffe"), (7, Schema(Type.INT32), "00000007"), (1.5, None, "3ff8000000000000"),
        (Float32(1.5), None, "3fc00000"), ("é", None, "c3a9"), (b"\x01", None, "01"), (Decimal("-1.28"), None, "0000000280"),
        (Decimal("1.28"), None, "000000020080"), (Decimal(0), None, "0000000000"), (Decimal("1E+2"), None, "fffffffe01"),
    ],
)  # fmt: skip
def test_the_binary_form_is_that_of_hbase(value: Any, schema: Schema | None, expected: str) -> None:
    found = simple_bytes(value, schema, Encoding.BINARY)
    assert found is not None
    assert found.hex() == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [(True, b"true"), (10**15, b"1000000000000000"), (1.0, b"1.0"), (Decimal("1E+2"), b"100"), (Decimal("1.50"), b"1.50")],
)
def test_the_text_form_is_what_people_write(value: Any, expected: bytes) -> None:
    assert simple_bytes(value, None, Encoding.TEXT) == expected


@pytest.mark.parametrize("encoding", Encoding)
@pytest.mark.parametrize("value", [[1], {"a": 1}, None])
def test_other_values_have_no_simple_form(value: Any, encoding: Encoding) -> None:
    assert simple_bytes(value, None, encoding) is None
    assert simple_bytes(3, Schema(Type.INT32, name=DATE), encoding) is None


@pytest.mark.parametrize("value", [2**63, Decimal("NaN")])
def test_a_number_without_a_binary_form_is_refused(value: Any) -> None:
    with pytest.raises(DataError):
        simple_bytes(value, None, Encoding.BINARY)


@pytest.mark.parametrize(
    ("kind", "encoding", "cell"),
    [("int32", Encoding.TEXT, b"2147483648"), ("int8", Encoding.TEXT, b"x"), ("boolean", Encoding.TEXT, b"1"),
     ("string", Encoding.TEXT, b"\xff"), ("int64", Encoding.BINARY, b"\x00"), ("boolean", Encoding.BINARY, b"")],
)  # fmt: skip
def test_a_cell_that_is_not_of_its_type_is_refused(kind: str, encoding: Encoding, cell: bytes) -> None:
    with pytest.raises((ValueError, struct.error)):
        reader_of(kind, encoding)(cell)


def test_columns_are_families_columns_or_columns_with_types() -> None:
    assert columns_of(["cf", "d:a b", "d:x:y"]) == (
        Column(b"cf", None, None),
        Column(b"d", b"a b", None),
        Column(b"d", b"x:y", None),
    )
    assert columns_of(["cf:a", "cf:n=int32"]) == (Column(b"cf", b"a", "string"), Column(b"cf", b"n", "int32"))


@pytest.mark.parametrize(
    ("entries", "said"),
    [([":a"], "no family or column"), (["cf:a=integer"], "unknown type"), (["cf", "cf:a=int8"], "whole family"),
     (["cf:a=int8", "d:a"], "two columns")],
)  # fmt: skip
def test_what_names_no_columns_is_refused(entries: list[str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        columns_of(entries)
