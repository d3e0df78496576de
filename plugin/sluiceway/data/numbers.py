"""Defines Python classes for Java's narrower number types in schemaless values.

A schemaless ``int`` is Java's Long and a ``float`` is Double, as in JSON. Where Connect distinguishes narrower types without a
schema (Cast, MaskField, TimestampConverter, typed connectors), these classes represent them. Values with a schema are plain
``int`` and ``float``, because the schema defines the width.
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
    """A schemaless integer of any size. Connect's data API has no schema for it and only prints it."""

    __slots__ = ()


class Float32(float):
    """A schemaless Float; its value is exact in 32 bits (see ``to_float32``)."""

    __slots__ = ()
