"""Values as Java's ``String.valueOf`` prints them, which is what StringConverter and FileStreamSink write."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any


def java_text(value: Any) -> str:
    """Return ``String.valueOf(value)``: ``null``, ``true``, ``1.0E10``, ``{a=1}``, ``[1, 2]``, ``Struct{a=b}``.

    Bytes, for which Java prints an address, are shown as UTF-8 text, bad sequences replaced.
    """
    if type(value) is str:
        return value
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return java_double(value)
    return _other(value)


def _other(value: Any) -> str:
    from sluiceway.data.struct import Struct

    if isinstance(value, Mapping) and not isinstance(value, Struct):
        return "{" + ", ".join(f"{java_text(key)}={java_text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(java_text(item) for item in value) + "]"
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).decode("utf-8", "replace")
    if isinstance(value, dt.datetime):
        return value.strftime("%a %b %d %H:%M:%S UTC %Y")
    if isinstance(value, dt.date):
        return value.strftime("%a %b %d 00:00:00 UTC %Y")
    if isinstance(value, dt.time):
        return value.strftime("Thu Jan 01 %H:%M:%S UTC 1970")
    return str(value)


def java_double(value: float) -> str:
    """Return ``Double.toString(value)``: plain from 0.001 to below 10,000,000, else with an exponent."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return format(Decimal(repr(value)), "f") if "e" in repr(value) else repr(value)
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)  # noqa: S101 (it is finite)
    text = "".join(map(str, digits))
    return f"{'-' if sign else ''}{text[0]}.{text[1:] or '0'}E{exponent + len(text) - 1}"
