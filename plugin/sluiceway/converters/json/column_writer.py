"""Converts Arrow arrays of one schema to JSON messages, column by column. It returns the same bytes as ``fast_writer``."""

from __future__ import annotations

import re
import sys
from binascii import b2a_base64
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute

from sluiceway.api.columns import ColumnEncoder, NotColumnar
from sluiceway.columns.arrow_schema import arrow_type, logical
from sluiceway.columns.refused_values import in_field, refused_values
from sluiceway.columns.text_arrays import NUMBERS, data_of, is_plain, joined, nullable, number_texts
from sluiceway.converters.json.base64_text import to_base64
from sluiceway.converters.json.printer import dumps
from sluiceway.converters.json.writer import JsonWriter
from sluiceway.data.logical import DATE, DECIMAL, TIME, TIMESTAMP, unscaled_bytes
from sluiceway.data.schema import Field, Schema, Type
from sluiceway.java.dates.hybrid_calendar import DAY_MS
from sluiceway.java.numbers import decimal_text

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray
    from sluiceway.columns.text_arrays import Pieces

    Write = Callable[[AnyArray], Pieces]

pc: Any = pyarrow.compute  # its stubs do not know all arguments

_FOUR_BYTES = 0xF0  # the first byte of characters above U+FFFF, which are escaped
_ESCAPED = re.compile('["\\\\\x00-\x1f\U00010000-\U0010ffff]')
_BYTES_OF_DECIMAL128 = 16
_INTEGERS = {DATE: pa.int32(), TIME: pa.int32(), TIMESTAMP: pa.int64()}


def column_writer(writer: JsonWriter, schema: Schema, prefix: bytes, suffix: bytes) -> ColumnEncoder | None:
    """Return the function from arrays to messages with this prefix and suffix; None if the schema has no Arrow type."""
    try:
        kind = arrow_type(schema)
    except NotColumnar:
        return None
    write = _Writers(writer).nullable(schema)
    start, end = prefix.decode(), suffix.decode()

    def encode(array: AnyArray) -> AnyArray:
        if array.type != kind:
            raise NotColumnar(f"an array of {array.type} for {schema}")
        with refused_values(f"JSON of {schema}"):  # more than 2 GB
            return joined([start, *write(array), end], len(array)).cast(pa.binary())

    return encode


class _Writers:
    """Creates functions from arrays to pieces of text."""

    def __init__(self, writer: JsonWriter) -> None:
        self._writer = writer

    def nullable(self, schema: Schema | None) -> Write:
        """Return the function for arrays with nulls, which are replaced by the default."""
        assert schema is not None  # noqa: S101 (schemas with an Arrow type have inner schemas)
        write = self._write(schema)
        default = schema.default if self._writer.use_defaults else None
        null = None if default is None and not schema.optional else dumps(self._writer.writer(schema)(default)).decode()

        return nullable(schema, write, joined, null)

    def _write(self, schema: Schema) -> Write:
        """Return the function for arrays without nulls."""
        name = logical(schema)
        if name == DECIMAL:
            return _numeric_decimals if self._writer.numeric_decimals else _decimals
        if name is not None:
            return _moments(name)
        if schema.type in NUMBERS:
            return _numbers
        if schema.type in (Type.STRING, Type.BYTES):
            return _strings if schema.type is Type.STRING else _bytes
        return {Type.ARRAY: self._lists, Type.MAP: self._maps, Type.STRUCT: self._structs}[schema.type](schema)

    def _structs(self, schema: Schema) -> Write:
        fields = [(field.name, self._name(field), self.nullable(field.schema)) for field in schema.fields]

        def write(array: Any) -> Pieces:
            pieces: Pieces = []
            for index, (name, text, write_field) in enumerate(fields):
                pieces += [text, *in_field(name, write_field, array.field(index))]
            return [*pieces, "}"] if pieces else ["{}"]

        return write

    def _name(self, field: Field) -> str:
        return f"{',' if field.index else '{'}{dumps(field.name).decode()}:"

    def _lists(self, schema: Schema) -> Write:
        write_items = self.nullable(schema.value_schema)

        def write(array: Any) -> Pieces:
            items = array.flatten()
            return ["[", _joined_lists(array, joined(write_items(items), len(items))), "]"]

        return write

    def _maps(self, schema: Schema) -> Write:
        """Return the function for maps: objects if the keys are strings, else arrays of pairs."""
        assert schema.key_schema is not None  # noqa: S101 (a map schema has one)
        write_keys, write_items = self.nullable(schema.key_schema), self.nullable(schema.value_schema)
        as_object = schema.key_schema.type is Type.STRING
        start, middle, end = ("", ":", "") if as_object else ("[", ",", "]")

        def write(array: Any) -> Pieces:
            first, last = array.offsets[0].as_py(), array.offsets[len(array)].as_py()
            keys, items = (entries.slice(first, last - first) for entries in (array.keys, array.items))
            texts = joined([start, *write_keys(keys), middle, *write_items(items), end], len(keys))
            return ["{" if as_object else "[", _joined_lists(array, texts), "}" if as_object else "]"]

        return write


def _joined_lists(array: Any, texts: AnyArray) -> AnyArray:
    """Return the texts of each list's elements, separated by commas."""
    starts = pc.subtract(array.offsets, array.offsets[0])
    joined_texts: AnyArray = pc.binary_join(pa.ListArray.from_arrays(starts, texts), ",")
    return joined_texts


def _numbers(array: AnyArray) -> Pieces:
    if pa.types.is_floating(array.type):
        finite = pc.is_finite(array)
        if pc.all(finite).as_py() is False:
            quote = pc.if_else(finite, "", '"')
            return [quote, number_texts(array), quote]
    return [number_texts(array)]


def _moments(name: str) -> Write:
    def write(array: AnyArray) -> Pieces:
        integers = array.view(_INTEGERS[name])
        in_a_day = pc.and_(pc.greater_equal(integers, 0), pc.less_equal(integers, DAY_MS))
        if name == TIME and pc.all(in_a_day).as_py() is False:
            raise NotColumnar("times beyond a day")
        return [integers.cast(pa.utf8())]

    return write


def _strings(array: Any) -> Pieces:
    if is_plain(data_of(array), below=_FOUR_BYTES):
        return ['"', array, '"']
    search = _ESCAPED.search
    texts = [dumps(text).decode()[1:-1] if search(text) else text for text in array.to_pylist()]
    return ['"', pa.array(texts, pa.utf8()), '"']


def _bytes(array: Any) -> Pieces:
    return ['"', pa.array(map(to_base64, array.to_pylist()), pa.utf8()), '"']


def _decimals(array: Any) -> Pieces:
    width = array.type.byte_width
    numbers = _small_numbers(array) if width == _BYTES_OF_DECIMAL128 else None
    if numbers is not None:
        encoded = [b2a_base64(number.to_bytes(number.bit_length() // 8 + 1, "big"), newline=False) for number in numbers]
        return ['"', pa.array(encoded, pa.utf8()), '"']
    unscaled = array.view(pa.binary(width)).to_pylist()
    texts = [to_base64(unscaled_bytes(int.from_bytes(number, "little", signed=True))) for number in unscaled]
    return ['"', pa.array(texts, pa.utf8()), '"']


def _small_numbers(array: Any) -> list[int] | None:
    """Return the unscaled values of 128-bit decimals; None unless all are positive and have at most 63 bits."""
    start, end = array.offset * _BYTES_OF_DECIMAL128, (array.offset + len(array)) * _BYTES_OF_DECIMAL128
    words = memoryview(array.buffers()[1])[start:end].cast("q")
    low, high = words[::2].tolist(), words[1::2].tolist()
    return low if sys.byteorder == "little" and not any(high) and min(low, default=0) >= 0 else None


def _numeric_decimals(array: Any) -> Pieces:
    return [pa.array(map(decimal_text, array.to_pylist()), pa.utf8())]
