"""Java's narrower numbers for schemaless values.

A schemaless ``int`` is Java's Long and a ``float`` its Double, which is what JSON brings. Where Connect tells the narrower
types apart without a schema (Cast, MaskField, TimestampConverter, typed connectors), these stand for them. With a schema
plain ``int`` and ``float`` are used: there the schema says the width.
"""

from __future__ import annotations

import struct


class Int8(int):
    """A schemaless Byte."""

    __slots__ = ()


class Int16(int):
    """A schemaless Short."""

    __slots__ = ()


class Int32(int):
    """A schemaless Integer."""

    __slots__ = ()


class BigInteger(int):
    """A schemaless integer of any size. No schema goes with it: Connect takes it for no value of its own, only prints it."""

    __slots__ = ()


class Float32(float):
    """A schemaless Float; its value is one that 32 bits can hold (see ``to_float32``)."""

    __slots__ = ()


_FLOAT = struct.Struct(">f")


def wrap(value: int, bits: int) -> int:
    """Return the low bits of an integer as Java's narrowing casts do: two's complement, nothing refused."""
    half = 1 << (bits - 1)
    return (value + half & (1 << bits) - 1) - half


def to_float32(value: float) -> float:
    """Return a float rounded to 32 bits as Java's ``(float)`` does: too large becomes infinite."""
    try:
        rounded: float = _FLOAT.unpack(_FLOAT.pack(value))[0]
        return rounded
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
