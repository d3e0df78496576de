"""Compact JSON, byte for byte as Connect's JsonConverter writes it to the internal topics. Pure: no I/O."""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Mapping
from decimal import Decimal

import orjson

from sluiceway.errors import DataError

_ESCAPES = re.compile(rb"\\(?:u[0-9a-f]{4}|.)")
_BEYOND_16_BITS = re.compile("[\U00010000-\U0010ffff]")


def dumps(value: object) -> bytes:
    """Return JSON without spaces, members in the mapping's order; raises DataError for what has no JSON."""
    parts: list[bytes] = []
    _write(value, parts)
    return b"".join(parts)


def loads(data: bytes) -> object:
    """Return the value in JSON bytes, whole numbers exact whatever their size; raises DataError."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DataError(f"Not JSON: {error}.") from error


def _write(value: object, parts: list[bytes]) -> None:
    if value is None:
        parts.append(b"null")
    elif isinstance(value, bool):
        parts.append(b"true" if value else b"false")
    elif isinstance(value, str):
        parts.append(_text(value))
    elif isinstance(value, int):
        parts.append(b"%d" % value)
    elif isinstance(value, float):
        parts.append(_double(value))
    elif isinstance(value, bytes):
        parts.append(b'"' + base64.b64encode(value) + b'"')
    elif isinstance(value, Mapping):
        _write_object(value, parts)
    elif isinstance(value, (list, tuple)):
        _write_array(value, parts)
    else:
        raise DataError(f"A value of type {type(value).__name__} cannot be stored as JSON.")


def _write_object(value: Mapping[object, object], parts: list[bytes]) -> None:
    before = b"{"
    for key, member in value.items():
        if not isinstance(key, str):
            raise DataError(f"Keys must be text to be stored as JSON, but one is a {type(key).__name__}.")
        parts += (before, _text(key), b":")
        _write(member, parts)
        before = b","
    parts.append(b"}" if value else b"{}")


def _write_array(value: list[object] | tuple[object, ...], parts: list[bytes]) -> None:
    before = b"["
    for item in value:
        parts.append(before)
        _write(item, parts)
        before = b","
    parts.append(b"]" if value else b"[]")


def _text(text: str) -> bytes:
    """Return quoted text as Jackson writes it: UTF-8, but characters beyond 16 bits as two escaped surrogates."""
    try:
        data = orjson.dumps(text)
    except TypeError as error:
        raise DataError("A text with half a surrogate pair cannot be stored as UTF-8.") from error
    if b"\\u" in data:
        data = _ESCAPES.sub(_capitals, data)
    if text.isascii():
        return data
    return _BEYOND_16_BITS.sub(_surrogates, data.decode()).encode()


def _capitals(escape: re.Match[bytes]) -> bytes:
    found = escape.group()
    return b"\\u" + found[2:].upper() if found.startswith(b"\\u") else found


def _surrogates(character: re.Match[str]) -> str:
    units = character.group().encode("utf-16-be").hex().upper()
    return f"\\u{units[:4]}\\u{units[4:]}"


def _double(number: float) -> bytes:
    """Return a number as Java's ``Double.toString`` writes it."""
    if not math.isfinite(number):
        raise DataError(f"The number {number} cannot be stored as JSON.")
    sign, digits, exponent = Decimal(repr(number)).normalize().as_tuple()
    assert isinstance(exponent, int)  # noqa: S101 (finite)
    minus = "-" if sign else ""
    if number == 0:
        return f"{minus}0.0".encode()
    figures = "".join(map(str, digits))
    point = len(figures) + exponent  # the number is 0.<figures> times ten to the power of point
    if not -3 < point <= 7:
        return f"{minus}{figures[0]}.{figures[1:] or '0'}E{point - 1}".encode()
    whole = figures[:point].ljust(point, "0") if point > 0 else "0"
    fraction = figures[point:] if point > 0 else "0" * -point + figures
    return f"{minus}{whole}.{fraction or '0'}".encode()
