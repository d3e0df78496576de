"""Java's narrower numbers for schemaless values.

A schemaless ``int`` is Java's Long and a ``float`` its Double, which is what JSON brings. Where Connect tells the narrower
types apart without a schema (Cast, MaskField, TimestampConverter, typed connectors), these stand for them. With a schema
plain ``int`` and ``float`` are used: there the schema says the width.
"""

from __future__ import annotations


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
