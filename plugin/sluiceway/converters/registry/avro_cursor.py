"""Reads Avro's binary encoding of many records at once: each call reads the next value of every record.

Raises NotColumnar for data that is not exactly Avro.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from sluiceway.api.columns import NotColumnar, RowFormReason

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray

    Ints = np.ndarray[Any, np.dtype[np.int64]]
    Bytes = np.ndarray[Any, np.dtype[np.uint8]]
    Flags = np.ndarray[Any, np.dtype[np.bool_]]

_LAST_SHIFT = 63


class Cursor:
    """The positions of the next value of each record in a buffer, and the ends of the records."""

    __slots__ = ("_data", "_ends", "positions")

    def __init__(self, data: Bytes, positions: Ints, ends: Ints) -> None:
        self._data = data
        self._ends = ends
        self.positions = positions

    @classmethod
    def of(cls, messages: AnyArray) -> Cursor:
        """Return the cursor at the start of binary messages, of which none is null."""
        offsets: Any  # NumPy's stubs do not know Arrow's buffers
        data: Any
        _, offsets, data = messages.buffers()
        if offsets is None or data is None:
            raise NotColumnar("no data")
        bounds: Any = np.frombuffer(offsets, np.int32)[messages.offset : messages.offset + len(messages) + 1]
        bounds = bounds.astype(np.int64)
        return cls(np.frombuffer(data, np.uint8), bounds[:-1], bounds[1:])

    def __len__(self) -> int:
        return len(self.positions)

    def part(self, selected: Any) -> Cursor:
        """Return a cursor of some of the records."""
        return Cursor(self._data, self.positions[selected], self._ends[selected])

    def check_end(self) -> None:
        """Raise NotColumnar unless each record has been read exactly to its end.

        Since positions only grow, no value was read beyond the end of its record then.
        """
        if not np.array_equal(self.positions, self._ends):
            raise NotColumnar("records with bytes after their last field, or without their last bytes")

    def _at(self, positions: Ints) -> Bytes:
        found: Bytes = _taken(self._data, positions)
        return found

    def flags(self, true: int) -> Flags:
        """Read a byte that is 0 or ``true``: a boolean, or the branch of a union of two types."""
        found = self._at(self.positions)
        flags: Flags = found == true
        if not (flags | (found == 0)).all():
            raise NotColumnar("a boolean or branch of a union with another number")
        self.positions = self.positions + 1
        return flags

    def longs(self) -> Ints:
        """Read an int or long: little-endian groups of 7 bits, zigzag."""
        found = self._at(self.positions)
        positions = self.positions + 1
        values = (found & 0x7F).astype(np.uint64)
        longer = np.flatnonzero(found >= 0x80)
        shift = 7
        while len(longer):
            found = self._at(positions[longer])
            if shift == _LAST_SHIFT and (found > 1).any():
                raise NotColumnar("an integer of more than 64 bits")
            values[longer] |= (found & 0x7F).astype(np.uint64) << np.uint64(shift)
            positions[longer] += 1
            longer = longer[found >= 0x80]
            shift += 7
        self.positions = positions
        one = np.uint64(1)
        decoded: Ints = (values >> one).view(np.int64) ^ -(values & one).view(np.int64)
        return decoded

    def floats(self, kind: str) -> Any:
        """Read a little-endian float or double (``<f4``, ``<f8``)."""
        size = np.dtype(kind).itemsize
        if len(self._data) < size:
            raise NotColumnar("too few bytes for a float")
        # A view with a float at each byte, so that one gather reads all of them.
        at_each_byte = np.ndarray((len(self._data) - size + 1,), kind, self._data, strides=(1,))
        found = _taken(at_each_byte, self.positions)
        self.positions = self.positions + size
        return found

    def binary(self, size: int | None = None) -> AnyArray:
        """Read bytes or a string; of a fixed ``size`` if given."""
        starts, ends = self.spans(size)
        if not len(starts):
            return pa.array([], pa.binary())
        buffer: Any = pa.py_buffer  # its stubs do not know NumPy's arrays
        # The values and the gaps between them make an array; its every second element is a value.
        bounds = np.column_stack((starts, ends)).astype(np.int32).ravel()
        with_gaps: Any = pa.Array.from_buffers(pa.binary(), len(bounds) - 1, [None, buffer(bounds), buffer(self._data)])
        values: AnyArray = with_gaps.take(pa.array(np.arange(0, len(bounds), 2)))
        return values

    def spans(self, size: int | None = None) -> tuple[Ints, Ints]:
        """Read bytes or a string; return where each starts and ends."""
        sizes: Ints = self.longs() if size is None else np.full(len(self), size, np.int64)
        if len(self) and (sizes.min() < 0 or sizes.max() > len(self._data)):
            raise NotColumnar("bytes of a negative size, or beyond the end of the record")
        starts = self.positions
        ends = starts + sizes
        if (ends > self._ends).any():
            raise NotColumnar("bytes beyond the end of the record")
        self.positions = ends
        return starts, ends

    def two_complements(self, width: int, size: int | None = None) -> Bytes:
        """Read big-endian two's complements, as decimals have; return them little-endian, with ``width`` bytes each."""
        starts, ends = self.spans(size)
        sizes = ends - starts
        if len(sizes) and (sizes.min() < 1 or sizes.max() > width):
            raise NotColumnar("a decimal without bytes, or with too many")
        places = (ends - 1)[:, None] - np.arange(width)
        inside = places >= starts[:, None]
        signs = np.where(self._data[starts] >= 0x80, 0xFF, 0).astype(np.uint8)
        found: Bytes = np.where(inside, self._data[np.maximum(places, 0)], signs[:, None])
        return found


def _taken(data: Any, positions: Ints) -> Any:
    try:
        return data[positions]
    except IndexError as error:
        raise NotColumnar("data that ends early", RowFormReason.ERROR) from error
