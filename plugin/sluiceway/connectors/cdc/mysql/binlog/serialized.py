"""Reads the messages of MySQL's serialization library, which events since MySQL 8.3 consist of. No I/O."""

from __future__ import annotations

import uuid

from sluiceway.errors import ConnectError

_VERSION = 1
_FLAGS, _SOURCE, _NUMBER, _TAG = range(4)
_SOURCE_BYTES = 16


def read_varlen(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """Return an integer of one to nine bytes and the position after it.

    The lowest bits of the first byte that are set count the bytes after it. The value is in the bits above the next one.
    """
    first = data[at]
    more = (~first & (first + 1)).bit_length() - 1
    end = at + 1 + more
    return int.from_bytes(data[at:end], "little") >> min(more + 1, 8), end


def tagged_gtid(data: bytes | memoryview) -> str:
    """Return the GTID of a GTID_TAGGED event, ``uuid:tag:number``, or ``uuid:number`` if its tag is empty.

    Raises:
        ConnectError: the event has another form.
    """
    version, at = read_varlen(data, 0)
    _size, at = read_varlen(data, at)
    _last, at = read_varlen(data, at)
    if version != _VERSION:
        raise ConnectError(f"The binary log has a tagged GTID in the unknown form {version}. Do not assign tags to GTIDs.")
    at = _value(data, at, _FLAGS)
    _, at = read_varlen(data, at)
    at = _value(data, at, _SOURCE)
    source = bytearray()
    for _ in range(_SOURCE_BYTES):
        byte, at = read_varlen(data, at)
        source.append(byte)
    number, at = read_varlen(data, _value(data, at, _NUMBER))
    length, at = read_varlen(data, _value(data, at, _TAG))
    tag = bytes(data[at : at + length]).decode("ascii")
    # The number is a signed integer, whose lowest bit is the sign.
    return ":".join(filter(None, (str(uuid.UUID(bytes=bytes(source))), tag, str(number >> 1))))


def _value(data: bytes | memoryview, at: int, field: int) -> int:
    """Return the position of a field's value, which its number precedes."""
    found, at = read_varlen(data, at)
    if found != field:
        raise ConnectError(
            f"A tagged GTID of the binary log has the field {found} instead of {field}. The binary log is damaged."
        )
    return at
