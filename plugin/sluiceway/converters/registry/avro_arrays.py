"""Encodes arrays of numbers and bytes in Avro's binary encoding, as arrays of bytes with an element for each value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray

    Pieces = list[bytes | AnyArray]
    """Constants and binary arrays of one length without nulls, whose bytes in a row make a value."""

pc: Any = pyarrow.compute  # its stubs do not know all arguments

_GROUP = 7
_ONE_BYTE = 1 << _GROUP


def joined(pieces: Pieces, count: int) -> AnyArray:
    """Return ``count`` values of pieces in a row."""
    merged: Pieces = []
    for piece in pieces:
        if isinstance(piece, bytes) and merged and isinstance(merged[-1], bytes):
            merged[-1] += piece
        else:
            merged.append(piece)
    if len(merged) == 1 and not isinstance(merged[0], bytes):
        return merged[0]
    if all(isinstance(piece, bytes) for piece in merged):
        return pa.array([b"".join(map(bytes, merged))] * count, pa.binary())
    values: AnyArray = pc.binary_join_element_wise(*merged, b"")
    return values


def longs(array: AnyArray) -> AnyArray:
    """Return integers without nulls as longs: little-endian groups of 7 bits, zigzag."""
    numbers: Any = array.cast(pa.int64()).to_numpy()
    zigzag = ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)
    most = int(zigzag.max()) if len(zigzag) else 0
    if most < _ONE_BYTE:
        return _binary(zigzag.astype(np.uint8), np.ones(len(zigzag), np.int64))
    widest = -(-most.bit_length() // _GROUP)
    groups = np.empty((len(zigzag), widest), np.uint8)
    sizes = np.ones(len(zigzag), np.int64)
    for at in range(widest):
        shifted = zigzag >> np.uint64(at * _GROUP)
        goes_on = shifted >= _ONE_BYTE
        groups[:, at] = (shifted & np.uint64(0x7F)) | (goes_on * np.uint64(0x80))
        sizes += goes_on
    return _binary(groups[np.arange(widest) < sizes[:, None]], sizes)


def floats(array: Any) -> AnyArray:
    """Return floats or doubles without nulls, little-endian."""
    numbers: Any = array.to_numpy()
    size = numbers.dtype.itemsize
    return _binary(numbers.astype(f"<f{size}").view(np.uint8), np.full(len(numbers), size, np.int64))


def booleans(array: AnyArray) -> AnyArray:
    encoded: AnyArray = pc.if_else(array, b"\x01", b"\x00")
    return encoded


def decimals(array: Any) -> AnyArray:
    """Return the unscaled values of decimals without nulls, as the shortest big-endian two's complements."""
    width = array.type.byte_width
    _, data = array.buffers()
    numbers = np.frombuffer(data, np.uint8)[array.offset * width :][: len(array) * width].reshape(-1, width)
    is_negative = numbers[:, -1] >= 0x80
    differs = numbers != np.where(is_negative, 0xFF, 0).astype(np.uint8)[:, None]
    sizes = np.where(differs.any(axis=1), width - np.argmax(differs[:, ::-1], axis=1), 1)
    first = numbers[np.arange(len(numbers)), sizes - 1]
    sizes += (first >= 0x80) != is_negative  # one byte more for the sign
    big_endian = numbers[:, ::-1]
    return _binary(big_endian[np.arange(width) >= width - sizes[:, None]], sizes)


def lists(counts: AnyArray, starts: AnyArray, items: AnyArray) -> Pieces:
    """Return lists of ``counts`` encoded items as one block each; ``starts`` are the indices of their first items."""
    make: Any = pa.ListArray.from_arrays  # its stubs do not know this type of items
    contents = pc.binary_join(make(starts, items), b"")
    return [longs(counts), contents, pc.if_else(pc.equal(counts, 0), b"", b"\x00")]


def sized(array: AnyArray) -> Pieces:
    """Return text or bytes without nulls, each after its size."""
    values = array.cast(pa.binary())
    return [longs(pc.binary_length(values)), values]


def _binary(data: Any, sizes: Any) -> AnyArray:
    """Return the array of values of these sizes in a row."""
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int32)
    buffer: Any = pa.py_buffer  # its stubs do not know NumPy's arrays
    return pa.Array.from_buffers(pa.binary(), len(sizes), [None, buffer(offsets), buffer(np.ascontiguousarray(data))])
