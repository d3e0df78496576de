"""Reads and writes Java's serialization of two types: strings, and ``HashMap<byte[], byte[]>``. No I/O.

The map is the format of Connect's offsets file.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

Entries = dict["bytes | None", "bytes | None"]

_HASH_MAP = (
    b"\xac\xed\x00\x05"  # stream magic and version
    b"sr\x00\x11java.util.HashMap\x05\x07\xda\xc1\xc3\x16\x60\xd1\x03\x00\x02"  # object of a class with two fields
    b"F\x00\x0aloadFactorI\x00\x09thresholdxp"
    b"\x3f\x40\x00\x00"  # load factor 0.75
)
_BYTE_ARRAY_CLASS = b"r\x00\x02[B\xac\xf3\x17\xf8\x06\x08T\xe0\x02\x00\x00xp"
_BYTE_ARRAY_CLASS_AGAIN = b"q\x00\x7e\x00\x02"
_FIRST_ARRAY_HANDLE = 0x7E0003
_NULL, _ARRAY, _REFERENCE, _BLOCK_OF_8, _END = b"p", b"u", b"q", b"w\x08", b"x"
_FIRST_CAPACITY = 16


class MalformedError(ValueError):
    """The bytes are not a serialized ``HashMap<byte[], byte[]>``; the message names the first wrong byte."""


def dumps(entries: Mapping[bytes | None, bytes | None]) -> bytes:
    """Return the bytes that Java writes for a map filled with these entries in this order."""
    capacity = _FIRST_CAPACITY
    while len(entries) > capacity * 3 // 4:
        capacity *= 2
    threshold = capacity * 3 // 4 if entries else 0  # an empty map has no table yet
    parts = [_HASH_MAP, struct.pack(">i", threshold), _BLOCK_OF_8, struct.pack(">ii", capacity, len(entries))]
    array_class = _BYTE_ARRAY_CLASS
    for pair in entries.items():
        for data in pair:
            if data is None:
                parts.append(_NULL)
                continue
            parts += (_ARRAY, array_class, struct.pack(">i", len(data)), data)
            array_class = _BYTE_ARRAY_CLASS_AGAIN
    parts.append(_END)
    return b"".join(parts)


def serialized_string(text: str) -> bytes:
    """Return the bytes that Java's ``ObjectOutputStream`` writes for a string: modified UTF-8 with its length."""
    data = text.encode("utf-16-be", "surrogatepass")
    units = (data[index] << 8 | data[index + 1] for index in range(0, len(data), 2))
    encoded = b"".join(chr(unit).encode("utf-8", "surrogatepass") if unit else b"\xc0\x80" for unit in units)
    head = b"t" + struct.pack(">H", len(encoded)) if len(encoded) < 1 << 16 else b"|" + struct.pack(">Q", len(encoded))
    return b"\xac\xed\x00\x05" + head + encoded


def loads(data: bytes) -> Entries:
    """Return the entries in file order. Raises MalformedError."""
    reader = _Reader(data)
    reader.expect(_HASH_MAP, "a serialized java.util.HashMap")
    reader.take(4)  # the threshold, which follows from the size
    reader.expect(_BLOCK_OF_8, "the map's capacity and size")
    reader.take(4)
    size = reader.number()
    entries: Entries = {}
    for _ in range(size):
        key = reader.array()
        entries[key] = reader.array()
    reader.expect(_END, "the end of the map")
    if reader.at < len(data):
        raise MalformedError(f"there is more after the end of the map, from byte {reader.at} on")
    return entries


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0
        self._arrays: list[bytes] = []

    def take(self, count: int) -> bytes:
        found = self._data[self.at : self.at + count]
        if count < 0 or len(found) < count:
            raise MalformedError(f"it ends in the middle, at byte {len(self._data)}")
        self.at += count
        return found

    def number(self) -> int:
        return int(struct.unpack(">i", self.take(4))[0])

    def expect(self, wanted: bytes, what: str) -> None:
        if not self._data.startswith(wanted, self.at):
            raise MalformedError(f"{what} was expected at byte {self.at}")
        self.at += len(wanted)

    def array(self) -> bytes | None:
        kind = self.take(1)
        if kind == _NULL:
            return None
        if kind == _REFERENCE:  # an array that was written before
            index = self.number() - _FIRST_ARRAY_HANDLE
            if 0 <= index < len(self._arrays):
                return self._arrays[index]
        elif kind == _ARRAY:
            self.expect(_BYTE_ARRAY_CLASS_AGAIN if self._arrays else _BYTE_ARRAY_CLASS, "the class of byte[]")
            data = self.take(self.number())
            self._arrays.append(data)
            return data
        raise MalformedError(f"a byte[] was expected at byte {self.at - 1}")
