"""Writes compact JSON byte for byte as Connect's JsonConverter does on the internal topics. No I/O."""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Mapping

import orjson

from sluiceway.errors import DataError
from sluiceway.java.numbers import java_double

_ESCAPES = re.compile(rb"\\(?:u[0-9a-f]{4}|.)")
_BEYOND_16_BITS = re.compile("[\U00010000-\U0010ffff]")


def dumps(value: object) -> bytes:
    """Return JSON without spaces, with members in the mapping's order. Raises DataError for values that JSON cannot hold."""
    parts: list[bytes] = []
    _write(value, parts)
    return b"".join(parts)


def loads(data: bytes) -> object:
    """Parse JSON bytes; integers of any size stay exact. Raises DataError."""
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
    """Return quoted text as Jackson writes it: UTF-8, with characters beyond 16 bits as two escaped surrogates."""
    try:
        data = orjson.dumps(text)
    except TypeError as error:
        raise DataError("A string with an unpaired surrogate cannot be stored as UTF-8.") from error
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
    if not math.isfinite(number):
        raise DataError(f"The number {number} cannot be stored as JSON.")
    return java_double(number).encode()
