"""Parses JSON: exactly, as leniently as Connect and with all digits, or fast. No I/O.

Exact nodes are dict, list, str, bool, None, ``int`` of any size, and ``Decimal`` for numbers with a fraction or an exponent.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any, NoReturn

import orjson

from sluiceway.errors import DataError
from sluiceway.java.numbers import parse_decimal

_BLANKS = " \t\r\n"
_LONGEST_NUMBER = 1000

_LEADING_ZEROS = re.compile(r'"(?:[^"\\]|\\.)*"|(?<![\d.eE+\-])(-?)0+(?=\d)', re.DOTALL)
_UNDECODED = re.compile("[\udc80-\udcff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_NEGATIVE_ZERO = re.compile(rb"(?:^|[\[:,\s])-0(?:\.0*)?(?:[^0-9.]|$)")
_BEFORE_NUMBERS = frozenset(map(bytes, zip(b"[:, \t\r\n")))
_DIGITS = bytes(0x30 if 0x30 <= code <= 0x39 else 0x20 for code in range(256))
_LONG_NUMBER = b"0" * 19
_MINUS, _QUOTE = b'-"'


class _Missing:
    """The node of a blank document (Jackson's MissingNode), which is not null."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING = _Missing()


def parse_schemaless(data: bytes) -> Any:
    """Parse bytes to schemaless values with orjson. Raises ValueError if only ``parse`` gives the correct value.

    These are integers of more than 64 bits, which orjson parses to floats, and negative zeros, which Connect does not have.
    """
    # Searching for 19 digits is cheaper than walking the result, and for one byte than for two. A string has no numbers.
    if data and data[0] != _QUOTE and (_LONG_NUMBER in data.translate(_DIGITS) or (_MINUS in data and _negative_zero(data))):
        raise ValueError("orjson changes these numbers")
    return orjson.loads(data)


def _negative_zero(data: bytes) -> bool:
    return b"-0" in data and _NEGATIVE_ZERO.search(data) is not None


def loads_exactly(data: bytes) -> Any:
    """Parse a large document like ``parse_schemaless``, which takes more time to search dates for negative zeros."""
    if _LONG_NUMBER in data.translate(_DIGITS) or (_MINUS in data and b"-0" in data and _may_be_negative_zero(data)):
        raise ValueError("orjson changes these numbers")
    return orjson.loads(data)


def _may_be_negative_zero(data: bytes) -> bool:
    return any(part[-1:] in _BEFORE_NUMBERS for part in data.split(b"-0")[:-1])


def parse(data: bytes) -> Any:
    """Parse JSON exactly, like Jackson: any Unicode encoding, numbers with leading zeros, ignored text after the value.

    Return MISSING for a blank document. Raises DataError for invalid JSON.
    """
    try:
        return _parse_text(_decode(data))
    except (ValueError, RecursionError) as error:
        raise DataError("Converting byte[] to Kafka Connect data failed due to serialization error: ") from error


def _decode(data: bytes) -> str:
    encoding = json.detect_encoding(data)
    if encoding.startswith("utf-8"):  # invalid bytes after the value must be ignored
        return data.decode(encoding, "surrogateescape")
    return data.decode(encoding)


def _parse_text(text: str) -> Any:
    start = len(text) - len(text.lstrip(_BLANKS))
    if start == len(text):
        return MISSING
    try:
        return _first_value(text, start)
    except ValueError:
        without_zeros = _LEADING_ZEROS.sub(lambda found: found[0] if found[1] is None else found[1], text)
        if without_zeros == text:
            raise
        return _first_value(without_zeros, start)


def _first_value(text: str, start: int) -> Any:
    node, end = _DECODER.raw_decode(text, start)
    follower = text[end : end + 1]
    if isinstance(node, (int, Decimal)) and not isinstance(node, bool):
        ended = follower in _BLANKS  # also true at the end of the text, for an empty string
    else:
        ended = isinstance(node, (dict, list, str)) or not (follower.isalnum() or follower in ("_", "$"))
    if not ended:
        raise ValueError(f"Unexpected character {follower!r} after the value at position {end}.")
    bad = _UNDECODED.search(text, start, end)
    if bad is not None:
        raise ValueError(f"Invalid UTF-8 at position {bad.start()}.")
    if _SURROGATE_ESCAPE.search(text, start, end):
        _check_names(node)
    return node


def _check_names(node: Any) -> None:
    """Raise ValueError for a field name with an unpaired surrogate. Jackson allows it only in values."""
    if isinstance(node, dict):
        broken = next(filter(_SURROGATE.search, node), None)
        if broken is not None:
            raise ValueError(f"Broken surrogate pair in field name {broken!r}.")
    for item in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        _check_names(item)


def _integer(text: str) -> int:
    _check_length(text)
    return int(text)


def _fraction(text: str) -> Decimal:
    _check_length(text)
    return parse_decimal(text)


def _check_length(text: str) -> None:
    if len(text) > _LONGEST_NUMBER:
        raise ValueError(f"Number value length ({len(text)}) exceeds the maximum allowed ({_LONGEST_NUMBER})")


def _refuse(literal: str) -> NoReturn:
    raise ValueError(f"{literal} is not JSON")


_DECODER = json.JSONDecoder(parse_int=_integer, parse_float=_fraction, parse_constant=_refuse)
