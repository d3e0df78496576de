"""The columnar forms of the converters of single values: text, bytes, numbers and booleans. Runs on executors.

The functions return the same data as the row forms of the converters that call them.
"""

from __future__ import annotations

import sys
from array import array as machine_array
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute

from sluiceway.api.columns import Column, ColumnDecoder, ColumnEncoder, ColumnRun, NotColumnar
from sluiceway.columns.arrow_schema import arrow_type, logical
from sluiceway.columns.refused_values import refused_values
from sluiceway.columns.text_arrays import NUMBERS, data_of, number_texts, with_nulls
from sluiceway.data import Schema, Type

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray

    Convert = Callable[[AnyArray], AnyArray]

pc: Any = pyarrow.compute  # its stubs do not know all arguments

_CODES = {1: "b", 2: "h", 4: "i", 8: "q"}
_FALSE, _TRUE = b"\x00", b"\x01"


def decoder(schema: Schema, convert: Convert) -> ColumnDecoder:
    """Return the decoder that converts all messages to values of a schema; the row form decodes if it raises NotColumnar."""

    def decode(messages: AnyArray) -> list[ColumnRun]:
        if not len(messages):
            return []
        try:
            with refused_values(schema):
                column = Column(schema, convert(messages))
        except NotColumnar as error:
            return [ColumnRun(0, len(messages), None, error.refusal._replace(schema=schema))]
        return [ColumnRun(0, len(messages), column)]

    return decode


def encoder(schema: Schema | None, types: frozenset[Type], convert: Convert) -> ColumnEncoder | None:
    """Return the encoder of values of a schema; None for logical types, and for those not among ``types`` or unknown to Arrow."""
    if schema is None or logical(schema) is not None or schema.type not in types:
        return None
    try:
        kind = arrow_type(schema)
    except NotColumnar:
        return None

    def encode(values: AnyArray) -> AnyArray:
        if values.type != kind:
            raise NotColumnar(f"an array of {values.type} for {schema}")
        with refused_values(schema):
            return convert(values)

    return encode


def unchanged(values: AnyArray) -> AnyArray:
    return values


def text_of_utf8(messages: AnyArray) -> AnyArray:
    """Return messages as text; raises ArrowInvalid for bytes that are not UTF-8, which Java replaces."""
    return messages.cast(pa.utf8())


TEXT_TYPES = NUMBERS | {Type.STRING, Type.BYTES}


def utf8_of_text(values: AnyArray) -> AnyArray:
    """Return the UTF-8 of Java's texts of values; null stays null."""
    if pa.types.is_string(values.type):
        return values.cast(pa.binary())
    if pa.types.is_binary(values.type):
        return text_of_utf8(values).cast(pa.binary())
    if not values.null_count:
        return number_texts(values).cast(pa.binary())
    present = values.drop_null()
    return with_nulls(values, number_texts(present), None).cast(pa.binary())


def numbers_of(kind: pa.DataType, size: int) -> Convert:
    """Return the function from big-endian numbers of ``size`` bytes to an array; it raises NotColumnar for other sizes."""

    def convert(messages: AnyArray) -> AnyArray:
        present = messages.drop_null() if messages.null_count else messages
        if pc.all(pc.equal(pc.binary_length(present), size)).as_py() is False:
            raise NotColumnar("numbers of another size")
        numbers = pa.Array.from_buffers(kind, len(present), [None, pa.py_buffer(_swapped(data_of(present), size))])
        return numbers if present is messages else with_nulls(messages, numbers, None)

    return convert


def bytes_of(size: int) -> Convert:
    """Return the function from numbers to big-endian messages of ``size`` bytes; null stays null."""

    def convert(values: AnyArray) -> AnyArray:
        present: Any = values.drop_null()
        data = present.buffers()[1]
        swapped = b"" if data is None else _swapped(data.slice(present.offset * size, len(present) * size).to_pybytes(), size)
        fixed = pa.Array.from_buffers(pa.binary(size), len(present), [None, pa.py_buffer(swapped)])
        messages = fixed.cast(pa.binary())
        return with_nulls(values, messages, None) if values.null_count else messages

    return convert


def _swapped(data: bytes, size: int) -> bytes:
    """Return numbers in the other byte order, from or to big-endian."""
    numbers = machine_array(_CODES[size], data)
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers.tobytes()


def booleans_of(messages: AnyArray) -> AnyArray:
    """Return booleans of messages of one byte, 0 or 1. Raises NotColumnar for others."""
    are_true = pc.equal(messages, _TRUE)
    if pc.all(pc.or_(are_true, pc.equal(messages, _FALSE))).as_py() is False:
        raise NotColumnar("no booleans")
    values: AnyArray = are_true
    return values


def bytes_of_booleans(values: AnyArray) -> AnyArray:
    messages: AnyArray = pc.if_else(values, _TRUE, _FALSE)
    return messages
