"""The columnar forms of StringConverter, ByteArrayConverter, BooleanConverter and the number converters."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluiceway.api import Converter
from sluiceway.api.columns import NotColumnar
from sluiceway.converters.boolean_converter import BooleanConverter
from sluiceway.converters.byte_array_converter import ByteArrayConverter
from sluiceway.converters.number_converters import (
    DoubleConverter,
    FloatConverter,
    IntegerConverter,
    LongConverter,
    ShortConverter,
)
from sluiceway.converters.string_converter import StringConverter
from sluiceway.data import Schema, Type, decimal_schema, timestamp_schema
from sluiceway.data.logical import TIMESTAMP
from sluiceway.java.numbers import to_float32
from support.column_forms import Tolerant, decoded_alike, encoded_alike, many
from support.connect_data import schemas, values

CONVERTERS: list[type[Converter]] = [
    StringConverter,
    ByteArrayConverter,
    BooleanConverter,
    ShortConverter,
    IntegerConverter,
    LongConverter,
    FloatConverter,
    DoubleConverter,
]
KINDS = {
    Type.BOOLEAN: st.booleans(),
    Type.INT16: st.integers(-(2**15), 2**15 - 1),
    Type.INT32: st.integers(-(2**31), 2**31 - 1),
    Type.INT64: st.integers(-(2**63), 2**63 - 1),
    Type.FLOAT32: st.floats(width=32).map(to_float32),
    Type.FLOAT64: st.floats(),
    Type.STRING: st.text(st.characters(exclude_categories=["Cs"])),
    Type.BYTES: st.binary(),
}
OWN = dict(
    zip(
        CONVERTERS,
        [Type.STRING, Type.BYTES, Type.BOOLEAN, Type.INT16, Type.INT32, Type.INT64, Type.FLOAT32, Type.FLOAT64],
        strict=True,
    )
)
each_converter = pytest.mark.parametrize("kind", CONVERTERS)


def configured(kind: type[Converter], config: dict[str, str] | None = None) -> Converter:
    made = kind()
    made.configure(config or {})
    return made


@each_converter
def test_messages_are_decoded_alike(kind: type[Converter]) -> None:
    made = configured(kind)
    size = {Type.BOOLEAN: 1, Type.INT16: 2, Type.INT32: 4, Type.INT64: 8, Type.FLOAT32: 4, Type.FLOAT64: 8}.get(OWN[kind], 3)

    @many
    @given(st.lists(st.none() | KINDS[OWN[kind]], max_size=6))
    def test_valid(column: list[Any]) -> None:
        messages = [made.from_connect_data("t", Schema(OWN[kind], optional=True), value) for value in column]
        assert decoded_alike(made, messages) == len(messages), "no columnar form where there should be one"

    @many
    @given(st.lists(st.none() | st.binary(max_size=9) | st.binary(min_size=size, max_size=size) | st.just(b"\x01"), max_size=6))
    def test_any(messages: list[bytes | None]) -> None:
        decoded_alike(Tolerant(made), messages)

    test_valid()
    test_any()


@each_converter
def test_values_are_encoded_alike(kind: type[Converter]) -> None:
    made = configured(kind)

    @many
    @given(st.lists(st.none() | KINDS[OWN[kind]], max_size=6))
    def test_own_type(column: list[Any]) -> None:
        schema = Schema(OWN[kind], optional=True)
        assert encoded_alike(made, schema, column) == len(column), "no columnar form where there should be one"

    @many
    @given(schemas().flatmap(lambda schema: st.tuples(st.just(schema), st.lists(values(schema), max_size=6))))
    def test_any_type(data: tuple[Schema, list[Any]]) -> None:
        encoded_alike(made, *data)

    test_own_type()
    test_any_type()


@pytest.mark.parametrize("type_", KINDS)
def test_texts_of_all_types(type_: Type) -> None:
    @many
    @given(st.lists(st.none() | KINDS[type_], max_size=6))
    def test(column: list[Any]) -> None:
        found = encoded_alike(configured(StringConverter), Schema(type_, optional=True), column)
        assert found == len(column) or type_ is Type.BYTES, "no columnar form where there should be one"

    test()


@pytest.mark.parametrize("bad", [b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82"])
def test_bad_utf8_is_left_to_the_row_form(bad: bytes) -> None:
    assert decoded_alike(configured(StringConverter), [b"good", bad]) == 0
    assert encoded_alike(configured(StringConverter), Schema(Type.BYTES), [b"good", bad]) == 0
    assert decoded_alike(configured(StringConverter), ["é😀\x00".encode(), None, b""]) == 3


def test_no_columnar_form() -> None:
    other = configured(StringConverter, {"converter.encoding": "ISO-8859-1"})
    assert other.column_decoder("t") is None
    assert other.column_encoder("t", Schema(Type.STRING)) is None
    for kind in CONVERTERS:
        own = type("Own", (kind,), {})()
        assert own.column_decoder("t") is None
        assert own.column_encoder("t", Schema(OWN[kind])) is None
        assert configured(kind).column_encoder("t", None) is None
        for schema in (decimal_schema(2), timestamp_schema(), Schema(Type.STRING, name=TIMESTAMP)):
            assert configured(kind).column_encoder("t", schema) is None


def test_arrays_of_another_type_are_refused() -> None:
    for kind in CONVERTERS:
        encode = configured(kind).column_encoder("t", Schema(OWN[kind]))
        assert encode is not None
        with pytest.raises(NotColumnar):
            encode(pa.array([None], pa.int8()))


def test_converters_load_without_pyarrow() -> None:
    modules = sorted({kind.__module__ for kind in CONVERTERS} | {"sluiceway.converters.json_converter", "sluiceway.api"})
    code = f"import sys, {', '.join(modules)}; sys.exit('pyarrow' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_struct_with_a_type_that_arrow_lacks_has_no_columnar_form() -> None:
    schema = Schema(Type.STRUCT, fields=[("price", decimal_schema(-3))])
    assert configured(StringConverter).column_encoder("t", schema) is None
