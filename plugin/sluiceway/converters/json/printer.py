"""Prints JSON byte for byte like Jackson: compact, with uppercase escapes for control and surrogate characters. No I/O."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import orjson

from sluiceway.errors import DataError

_OPTIONS = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_SUBCLASS
_BACKSLASH = ord("\\")
# Matching escaped backslashes, too, keeps the text after them from being read as an escape.
_ESCAPES = re.compile(rb"\\(?:\\|u[0-9a-f]{4})")
_FOUR_BYTES = range(0xF0, 0xF5)  # the first bytes of characters beyond 16 bits
_BEYOND_16_BITS = re.compile(rb"[\xf0-\xf4][\x80-\xbf]{3}")


def orjson_dumps(node: Any, default: Callable[[Any], Any] | None = None) -> bytes:
    """Print a node with orjson; ``default`` replaces objects of other types. Raises TypeError."""
    text = orjson.dumps(node, default, _OPTIONS)
    # Searching for one byte is eight times faster than for b"\\u00".
    if _BACKSLASH in text:
        text = _ESCAPES.sub(_upper, text)
    if text.isascii() or not any(byte in text for byte in _FOUR_BYTES):  # a search for one byte is faster than a pattern
        return text
    return _BEYOND_16_BITS.sub(_surrogates, text)


def encode_text(text: str) -> bytes:
    """Encode JSON text with Jackson's escapes. Fast for ASCII without escapes of control characters."""
    if text.isascii() and "\\u" not in text:
        return text.encode()
    data = _ESCAPES.sub(_upper, text.encode("utf-8", "backslashreplace"))
    return _BEYOND_16_BITS.sub(_surrogates, data) if any(byte in data for byte in _FOUR_BYTES) else data


def dumps(node: Any) -> bytes:
    """Print a node; an ``orjson.Fragment`` is printed unchanged. Raises DataError if it cannot be printed."""
    try:
        return orjson_dumps(node)
    except TypeError:  # orjson refuses unpaired surrogates and more than 254 levels
        pass
    try:
        data = _text(node).encode("utf-8", "backslashreplace")  # writes an unpaired surrogate as \udxxx
    except (TypeError, RecursionError) as error:
        raise DataError("Converting Kafka Connect data to byte[] failed due to serialization error: ") from error
    return _BEYOND_16_BITS.sub(_surrogates, _ESCAPES.sub(_upper, data))


def _text(node: Any) -> str:
    if isinstance(node, dict):
        return "{" + ",".join([f"{json.dumps(name, ensure_ascii=False)}:{_text(item)}" for name, item in node.items()]) + "}"
    if isinstance(node, (list, tuple)):
        return "[" + ",".join([_text(item) for item in node]) + "]"
    if isinstance(node, orjson.Fragment):
        return orjson.dumps(node).decode()
    return json.dumps(node, ensure_ascii=False)


def _upper(escape: re.Match[bytes]) -> bytes:
    return escape[0][:2] + escape[0][2:].upper()


def _surrogates(character: re.Match[bytes]) -> bytes:
    units = character[0].decode().encode("utf-16-be")
    return b"\\u%02X%02X\\u%02X%02X" % tuple(units)
