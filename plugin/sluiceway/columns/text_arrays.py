"""Builds arrays of text from pieces: constants and arrays of text. Used by the columnar forms of converters."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute

from sluiceway.api.columns import NotColumnar
from sluiceway.data import Schema, Type
from sluiceway.java.numbers import java_double, java_float

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray

    Numbers = np.ndarray[Any, np.dtype[np.int64]]
    Pieces = list[str | AnyArray]
    """Constants and utf8 arrays of one length without nulls, whose texts in a row make a text."""

pc: Any = pyarrow.compute  # its stubs do not know all arguments
T = TypeVar("T", str, bytes)

_FIRST_PRINTABLE = 0x20


def joined(pieces: Pieces, count: int) -> AnyArray:
    """Return ``count`` texts of pieces in a row."""
    merged: Pieces = []
    for piece in pieces:
        if isinstance(piece, str) and merged and isinstance(merged[-1], str):
            merged[-1] += piece
        else:
            merged.append(piece)
    if len(merged) == 1 and not isinstance(merged[0], str):
        return merged[0]
    if all(isinstance(piece, str) for piece in merged):
        return pa.array(["".join(map(str, merged))] * count, pa.utf8())
    texts: AnyArray = pc.binary_join_element_wise(*merged, "")
    return texts


def values_between(data: bytes, begin: Numbers, end: Numbers, kind: pa.DataType, nulls: Any = None) -> AnyArray:
    """Return the values between positions of data as a binary array, or a utf8 array, which is not validated.

    Args:
        begin: ascending positions, as ``end``.
        nulls: tells which values are null.
    """
    count = len(begin)
    bounds = np.empty(2 * count + 1, np.int32)
    bounds[0:-1:2], bounds[1::2], bounds[-1] = begin, end, end[-1] if count else 0
    # An array of all pieces of the data, without a copy; every second piece is a value.
    pieces: Any = pa.Array.from_buffers(kind, 2 * count, [None, pa.py_buffer(bounds.tobytes()), pa.py_buffer(data)])
    values: AnyArray = pieces.take(pa.array(np.arange(0, 2 * count, 2), mask=nulls))
    return values


def with_nulls(array: AnyArray, present: AnyArray, null: str | bytes | None) -> AnyArray:
    """Return what was made of the values of an array that are not null, with ``null`` in the place of the others."""
    valid = array.is_valid()
    positions = pc.subtract(pc.cumulative_sum(valid.cast(pa.int64())), 1)
    taken = present.take(pc.if_else(valid, positions, pa.scalar(None, pa.int64())))
    return taken if null is None else taken.fill_null(null)


def nullable(
    schema: Schema,
    write: Callable[[AnyArray], list[T | AnyArray]],
    joined: Callable[[list[T | AnyArray], int], AnyArray],
    null: T | None,
) -> Callable[[AnyArray], list[T | AnyArray]]:
    """Return the function from arrays to pieces that writes ``null`` for null; without it, the function raises NotColumnar.

    ``write`` returns the pieces of an array without nulls, and ``joined`` those in a row.
    """

    def write_nullable(array: AnyArray) -> list[T | AnyArray]:
        if not array.null_count:
            return write(array)
        if null is None:
            raise NotColumnar(f"{schema} is required, but has null values")
        present = array.drop_null()
        return [with_nulls(array, joined(write(present), len(present)), null)]

    return write_nullable


def number_texts(array: AnyArray) -> AnyArray:
    """Return Java's texts of integers, booleans or floats without nulls; ``NaN`` and ``Infinity`` are not quoted."""
    if pa.types.is_floating(array.type):
        return _float32_texts(array) if array.type == pa.float32() else _float64_texts(array)
    return array.cast(pa.utf8())


def _float64_texts(array: AnyArray) -> AnyArray:
    """Return Java's texts of doubles. orjson prints the same digits from 0.001 to below 10,000,000."""
    if not len(array):
        return pa.array([], pa.utf8())
    # orjson prints the array at once, without spaces.
    document = pa.array([orjson.dumps(array.to_pylist())[1:-1]], pa.binary()).cast(pa.utf8())
    texts = pc.split_pattern(document, ",")
    return _with_exponents(array, texts.values, java_double)


def _float32_texts(array: AnyArray) -> AnyArray:
    """Return Java's texts of floats. Arrow prints the same digits from 0.001 to below 10,000,000, but 1 for 1.0."""
    texts = array.cast(pa.utf8())
    whole = pc.equal(pc.floor(array), array)
    if pc.any(whole).as_py():
        texts = pc.if_else(whole, joined([texts, ".0"], len(array)), texts)
    return _with_exponents(array, texts, java_float)


def _with_exponents(array: AnyArray, texts: AnyArray, text_of: Callable[[float], str]) -> AnyArray:
    """Return the texts with those of very small, very large and other special numbers replaced by ``text_of``."""
    size = pc.abs(array)
    kind = array.type
    is_plain = pc.or_(
        pc.and_(pc.greater_equal(size, pa.scalar(0.001, kind)), pc.less(size, pa.scalar(1e7, kind))),
        pc.equal(array, pa.scalar(0.0, kind)),
    )
    if pc.all(is_plain).as_py() is not False:
        return texts
    numbers: list[Any] = array.filter(pc.invert(is_plain)).to_pylist()
    special = [text_of(number) for number in numbers]
    replaced: AnyArray = pc.replace_with_mask(texts, pc.invert(is_plain), pa.array(special, pa.utf8()))
    return replaced


def data_of(array: AnyArray) -> bytes:
    """Return the bytes of all values of a utf8 or binary array in a row."""
    _, bounds, data = array.buffers()
    if bounds is None or data is None or not len(array):
        return b""
    offsets = pa.Array.from_buffers(pa.int32(), len(array) + 1, [None, bounds], offset=array.offset)
    first, last = int(offsets[0].as_py()), int(offsets[len(array)].as_py())
    return data.slice(first, last - first).to_pybytes()


def is_plain(data: bytes, *, below: int = 256) -> bool:
    """Return True if UTF-8 has no character that JSON escapes (quotes, backslashes, control characters) and only bytes below."""
    if not data:
        return True
    if b'"' in data or b"\\" in data:
        return False
    found = pc.min_max(pa.Array.from_buffers(pa.uint8(), len(data), [None, pa.py_buffer(data)]))
    return bool(found["min"].as_py() >= _FIRST_PRINTABLE and found["max"].as_py() < below)


NUMBERS = frozenset({Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.FLOAT32, Type.FLOAT64, Type.BOOLEAN})
"""The types whose values ``number_texts`` prints."""
