"""Maps Python values to the Java class names in Connect's error messages."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from sluiceway.data.instant import MOMENT_TYPES
from sluiceway.data.numbers import BigInteger, Float32, Int8, Int16, Int32

_NAMES: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (str, "java.lang.String"),
    (bool, "java.lang.Boolean"),
    (Int8, "java.lang.Byte"),
    (Int16, "java.lang.Short"),
    (Int32, "java.lang.Integer"),
    (BigInteger, "java.math.BigInteger"),
    (int, "java.lang.Long"),
    (Float32, "java.lang.Float"),
    (float, "java.lang.Double"),
    ((bytes, bytearray, memoryview), "[B"),
    ((list, tuple), "java.util.ArrayList"),
    (Decimal, "java.math.BigDecimal"),
    (MOMENT_TYPES, "java.util.Date"),
)


def java_class(value: Any) -> str:
    """Return the name of a value's Java class, such as ``java.lang.Long``; ``null`` for None."""
    if value is None:
        return "null"
    for kinds, name in _NAMES:
        if isinstance(value, kinds):
            return name
    if isinstance(value, Mapping):
        return "org.apache.kafka.connect.data.Struct" if hasattr(value, "schema") else "java.util.HashMap"
    return f"{type(value).__module__}.{type(value).__qualname__}"
