"""Reads the records that the Kinesis Producer Library puts into one record of a stream. No I/O.

An aggregated record is a magic number, a message of Protocol Buffers, and the message's MD5 (the library's aggregation format):
AggregatedRecord has the partition keys (field 1), the explicit hash keys (2), and the records (3); a Record has the number of its
partition key (1), the number of its explicit hash key (2), and its data (3).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from sluiceway.errors import DataError

_MAGIC = b"\xf3\x89\x9a\xc2"
_MD5 = 16
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MOST_BITS = 63


@dataclass(frozen=True, slots=True)
class UserRecord:
    """One of the records of an aggregated record."""

    key: str
    hash_key: str | None
    data: bytes


def user_records(data: bytes) -> list[UserRecord] | None:
    """Return the records of an aggregated record; None for a record that is none. Raises DataError if it is damaged."""
    if not data.startswith(_MAGIC) or len(data) < len(_MAGIC) + _MD5:
        return None
    message = data[len(_MAGIC) : -_MD5]
    if hashlib.md5(message, usedforsecurity=False).digest() != data[-_MD5:]:
        return None  # it only begins like one
    keys: list[bytes] = []
    hash_keys: list[bytes] = []
    records: list[bytes] = []
    tables = {1: keys, 2: hash_keys, 3: records}
    for number, value in _fields(message):
        if number in tables and isinstance(value, bytes):
            tables[number].append(value)
    try:
        return [_user_record(each, keys, hash_keys) for each in records]
    except (IndexError, UnicodeDecodeError) as error:
        raise DataError(f"An aggregated record of the Kinesis Producer Library is damaged: {error}") from error


def _user_record(message: bytes, keys: list[bytes], hash_keys: list[bytes]) -> UserRecord:
    key, hash_key, data = 0, None, b""
    for number, value in _fields(message):
        if number == 1 and isinstance(value, int):
            key = value
        elif number == 2 and isinstance(value, int):
            hash_key = value
        elif number == 3 and isinstance(value, bytes):
            data = value
    return UserRecord(keys[key].decode(), None if hash_key is None else hash_keys[hash_key].decode(), data)


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the numbers and values of a message's fields. Raises DataError if it ends within one."""
    position = 0
    while position < len(message):
        tag, position = _varint(message, position)
        kind = tag & 7
        if kind == _VARINT:
            value, position = _varint(message, position)
            yield tag >> 3, value
            continue
        if kind == _BYTES:
            length, position = _varint(message, position)
        elif kind in (_FIXED64, _FIXED32):
            length = 8 if kind == _FIXED64 else 4
        else:
            raise DataError(f"An aggregated record of the Kinesis Producer Library is damaged: wire type {kind}")
        end = position + length
        if end > len(message):
            raise DataError("An aggregated record of the Kinesis Producer Library is damaged: it ends within a field")
        yield tag >> 3, message[position:end]
        position = end


def _varint(message: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= len(message) or shift > _MOST_BITS:
            raise DataError("An aggregated record of the Kinesis Producer Library is damaged: a number does not end")
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
