"""Computes Java's ``hashCode`` of values and Debezium's Murmur3 hash, which choose the partitions of records. No I/O."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

from sluiceway.data import Schema, Struct, Type, millis_of
from sluiceway.data.instant import MOMENT_TYPES
from sluiceway.java.hash_map import string_hash
from sluiceway.java.numbers import wrap

_MASK = (1 << 64) - 1
_SEED = 9001
_FIRST, _SECOND = 0x9368E53C2F6AF274, 0x586DCD208F7CD3FD
_C1, _C2 = 0x87C37B91114253D5, 0x4CF5AD432745937F
_NAN_FLOAT, _NAN_DOUBLE = 0x7FC00000, 0x7FF8000000000000


def java_hash(value: Any, schema: Schema) -> int:
    """Return ``value.hashCode()`` as a signed 32-bit integer; the schema gives the width of numbers.

    Bytes hash as a ``ByteBuffer``, which Debezium's connectors write.
    """
    if isinstance(value, Struct):
        inner = (java_hash(item, field.schema) for field, item in zip(value.schema.fields, value.values_, strict=True))
        return _combined(1, inner)
    if value is None:
        return 0
    for kinds, function in _BY_CLASS:
        if isinstance(value, kinds):
            return wrap(function(value, schema), 32)
    raise TypeError(f"{type(value).__name__} has no Java hash code")


def murmur_hash(value: Any, schema: Schema) -> int:
    """Return the Murmur3 hash of text, or of the hash code of any other value, as a signed 32-bit integer."""
    if isinstance(value, str):
        pairs = value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        return _murmur(pairs.encode("utf-8", "replace"))  # a surrogate without its other half is a question mark
    return _murmur((java_hash(value, schema) & 0xFFFFFFFF).to_bytes(4, "little"))


def _integer(value: int, schema: Schema) -> int:
    return value if schema.type is not Type.INT64 else value ^ (value >> 32 & 0xFFFFFFFF)


def _boolean(value: bool, _schema: Schema) -> int:
    return 1231 if value else 1237


def _float(value: float, schema: Schema) -> int:
    if schema.type is Type.FLOAT32:
        bits: int = _NAN_FLOAT if value != value else struct.unpack(">i", struct.pack(">f", value))[0]
        return bits
    bits = _NAN_DOUBLE if value != value else struct.unpack(">Q", struct.pack(">d", value))[0]
    return bits ^ bits >> 32


def _decimal(value: Decimal, _schema: Schema) -> int:
    sign, digits, exponent = value.as_tuple()
    unscaled = int(Decimal((0, digits, 0)))
    scale = -int(exponent)
    if unscaled < 1 << 63:  # BigDecimal keeps these as a long
        code = (31 * (unscaled >> 32) + (unscaled & 0xFFFFFFFF)) & 0xFFFFFFFF
        return 31 * wrap(-code if sign else code, 32) + scale
    code = _combined(0, (unscaled >> at & 0xFFFFFFFF for at in range((unscaled.bit_length() - 1) // 32 * 32, -1, -32)))
    return 31 * (-code if sign else code) + scale


def _moment(value: Any, _schema: Schema) -> int:
    millis = millis_of(value)
    return millis ^ millis >> 32


def _bytes(value: bytes, _schema: Schema) -> int:
    return _combined(1, (wrap(byte, 8) for byte in reversed(bytes(value))))


def _array(value: Any, schema: Schema) -> int:
    return _combined(1, (java_hash(item, schema.value_schema or schema) for item in value))


def _map(value: Any, schema: Schema) -> int:
    keys, values = schema.key_schema or schema, schema.value_schema or schema
    return sum(java_hash(key, keys) ^ java_hash(item, values) for key, item in value.items())


def _combined(first: int, codes: Iterator[int]) -> int:
    result = first
    for code in codes:
        result = (31 * result + code) & 0xFFFFFFFF
    return wrap(result, 32)


_BY_CLASS: tuple[tuple[Any, Callable[[Any, Schema], int]], ...] = (
    (str, lambda text, _: string_hash(text)),
    (bool, _boolean),
    (int, _integer),
    (float, _float),
    (Decimal, _decimal),
    (MOMENT_TYPES, _moment),
    ((bytes, bytearray, memoryview), _bytes),
    ((list, tuple), _array),
    (dict, _map),
)


class _State:
    """The registers of Debezium's variant of Murmur3, whose constants change with each block."""

    def __init__(self) -> None:
        self.h1, self.h2 = _FIRST ^ _SEED, _SECOND ^ _SEED
        self.c1, self.c2 = _C1, _C2

    def mix(self, k1: int, k2: int) -> None:
        k1 = _rotated(k1 * self.c1 & _MASK, 23) * self.c2 & _MASK
        self.h1 = ((self.h1 ^ k1) + self.h2) & _MASK
        self.h2 = _rotated(self.h2, 41)
        k2 = _rotated(k2 * self.c2 & _MASK, 23) * self.c1 & _MASK
        self.h2 = ((self.h2 ^ k2) + self.h1) & _MASK
        self.h1 = (self.h1 * 3 + 0x52DCE729) & _MASK
        self.h2 = (self.h2 * 3 + 0x38495AB5) & _MASK
        self.c1 = (self.c1 * 5 + 0x7B7D159C) & _MASK
        self.c2 = (self.c2 * 5 + 0x6BCE6396) & _MASK


def _murmur(data: bytes) -> int:
    state = _State()
    whole = len(data) // 16 * 16
    for at in range(0, whole, 16):
        state.mix(int.from_bytes(data[at : at + 8], "little"), int.from_bytes(data[at + 8 : at + 16], "little"))
    if len(data) > whole:
        state.mix(_tail(data[whole : whole + 8]), _tail(data[whole + 8 :]))
    h1, h2 = state.h1, state.h2 ^ len(data)
    h1 = (h1 + h2) & _MASK
    h2 = (h2 + h1) & _MASK
    return wrap((_final(h1) + _final(h2) & _MASK) >> 32, 32)


def _tail(data: bytes) -> int:
    """Return the bytes of an incomplete block as an integer. Debezium extends the sign of each."""
    value = 0
    for at, byte in enumerate(data):
        value ^= wrap(byte, 8) << 8 * at & _MASK
    return value


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & _MASK


def _final(value: int) -> int:
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        value = (value ^ value >> 33) * factor & _MASK
    return value ^ value >> 33
