"""Parses text to values of the narrowest type, as Connect's ``Values.parseString`` does. No I/O."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, NamedTuple

from sluiceway.data.instant import date_of, time_of, timestamp_of
from sluiceway.data.logical import date_schema, decimal_schema, time_schema, timestamp_schema
from sluiceway.data.numbers import Float32, Int8, Int16, Int32
from sluiceway.data.schema import (
    BOOLEAN_SCHEMA,
    FLOAT32_SCHEMA,
    FLOAT64_SCHEMA,
    INT8_SCHEMA,
    INT16_SCHEMA,
    INT32_SCHEMA,
    INT64_SCHEMA,
    STRING_SCHEMA,
    Schema,
    Type,
)
from sluiceway.data.values.converting import convert
from sluiceway.data.values.inferred_schemas import merged
from sluiceway.data.values.text import DATE_FORMAT, TIME_FORMAT, TIMESTAMP_FORMAT
from sluiceway.errors import DataError
from sluiceway.java.blanks import is_blank, trim
from sluiceway.java.dates.simple_date_format import SimpleDateFormat
from sluiceway.java.numbers import parse_decimal, to_float32

# A backslash escapes the next character.
_TOKEN = re.compile(r'[:,\[\]{}"]|(?:\\[:,\[\]{}"\\]|\\(?![:,\[\]{}"\\])|[^\\:,\[\]{}"])+', re.DOTALL)


class Parsed(NamedTuple):
    """A value with its schema; both are None for null.

    The schema of an array or map has None for items, keys or values without a common schema; numbers inside then have the class
    of their width (``Int8`` and so on).
    """

    schema: Schema | None
    value: Any


NULL = Parsed(None, None)

_LITERALS = {"null": NULL, "true": Parsed(BOOLEAN_SCHEMA, True), "false": Parsed(BOOLEAN_SCHEMA, False)}

_INTEGERS = (
    (INT8_SCHEMA, Int8, 1 << 7),
    (INT16_SCHEMA, Int16, 1 << 15),
    (INT32_SCHEMA, Int32, 1 << 31),
    (INT64_SCHEMA, int, 1 << 63),
)

_MOMENTS: dict[int, tuple[Schema, SimpleDateFormat, Any]] = {
    10: (date_schema(), DATE_FORMAT, date_of),
    13: (time_schema(), TIME_FORMAT, time_of),
    24: (timestamp_schema(), TIMESTAMP_FORMAT, timestamp_of),
}
"""Schema, format and constructor by the length of the text."""


def parse_string(text: str | None) -> Parsed:
    """Parse a text to null, a boolean, number, date, time, timestamp, list or map; else return the text itself."""
    if text is None:
        return NULL
    if not text:
        return Parsed(STRING_SCHEMA, text)
    return _parse(Tokens(text), embedded=False)


def _parse(tokens: Tokens, *, embedded: bool) -> Parsed:
    if embedded and tokens.take_if('"'):
        return _quoted(tokens)
    start = tokens.position
    for word, literal in _LITERALS.items():
        before = tokens.position
        if tokens.take_if(word):
            if embedded or not tokens.more():
                return literal
            tokens.position = before
    try:
        if tokens.take_if("["):
            return _list(tokens)
        if tokens.take_if("{"):
            return _map(tokens)
    except DataError:
        tokens.position = start
    token = tokens.take()
    return Parsed(STRING_SCHEMA, token) if is_blank(token) else _literal(tokens, trim(token), embedded=embedded)


def _literal(tokens: Tokens, token: str, *, embedded: bool) -> Parsed:
    first = token[0]
    if first.isdecimal():
        found = _moment_of_tokens(tokens, token)
        if found is not None:
            return found
    if first.isdecimal() or first in "+-":
        try:
            return _number(parse_decimal(token))
        except ValueError:
            pass
    if embedded:
        raise DataError("Failed to parse embedded value")
    return Parsed(STRING_SCHEMA, tokens.text)


def _quoted(tokens: Tokens) -> Parsed:
    content = ""
    while tokens.more() and not tokens.take_if('"'):
        content += tokens.take()
    return _moment(content) or Parsed(STRING_SCHEMA, content)


class _Common:
    """The common schema of the values added so far."""

    def __init__(self) -> None:
        self.schema: Schema | None = None
        self._mixed = False

    def add(self, schema: Schema | None) -> None:
        """Merge another value's schema; None, the schema of null, has no effect."""
        if schema is not None and not self._mixed:
            self.schema = schema if self.schema is None else merged(self.schema, schema)
            self._mixed = self.schema is None

    def align(self, value: Any) -> Any:
        return value if self.schema is None else convert(self.schema, None, value)


def _list(tokens: Tokens) -> Parsed:
    items: list[Any] = []
    common = _Common()
    while tokens.more():
        if tokens.take_if("]"):
            return Parsed(Schema(Type.ARRAY, value_schema=common.schema), [common.align(item) for item in items])
        if tokens.take_if(","):
            raise DataError(f"Unable to parse an empty array element: {tokens.text}")
        schema, item = _parse(tokens, embedded=True)
        common.add(schema)
        items.append(item)
        if not tokens.take_if(","):
            _require_end(tokens, "]")
    raise _unfinished("Array", "]", tokens)


def _require_end(tokens: Tokens, end: str) -> None:
    start = tokens.position
    if not tokens.take_if(end):
        raise DataError("Array elements missing ',' delimiter")
    tokens.position = start


def _map(tokens: Tokens) -> Parsed:
    entries: dict[Any, Any] = {}
    keys, values = _Common(), _Common()
    while tokens.more():
        if tokens.take_if("}"):
            value_schema = values.schema if keys.schema is not None else None
            schema = Schema(Type.MAP, key_schema=keys.schema, value_schema=value_schema)
            values = values if value_schema is not None else _Common()
            return Parsed(schema, {_key(keys.align(key)): values.align(value) for key, value in entries.items()})
        if tokens.take_if(","):
            raise DataError(f"Unable to parse a map entry with no key or value: {tokens.text}")
        key_schema, key = _parse(tokens, embedded=True)
        if key is None:
            raise DataError(f"Map entry may not have a null key: {tokens.text}")
        if not tokens.take_if(":"):
            raise DataError(f"Map entry is missing ':' at {tokens.position} in {tokens.text}")
        item_schema, value = _parse(tokens, embedded=True)
        tokens.take_if(",")
        keys.add(key_schema)
        values.add(item_schema)
        entries[_key(key)] = value
    raise _unfinished("Map", "}", tokens)


def _key(key: Any) -> Any:
    """Return a hashable key: converts lists and maps, which Java allows as keys, to tuples."""
    if isinstance(key, list):
        return tuple(map(_key, key))
    return tuple((_key(name), _key(item)) for name, item in key.items()) if isinstance(key, dict) else key


def _unfinished(kind: str, end: str, tokens: Tokens) -> DataError:
    what = "element after ','" if tokens.previous == "," else f"terminating '{end}'"
    return DataError(f"{kind} is missing {what}: {tokens.text}")


def _moment_of_tokens(tokens: Tokens, token: str) -> Parsed | None:
    """Return the time or timestamp of five tokens (its colons are tokens), or the date of one token; None for other text."""
    rest = tokens.join(4)
    if rest is not None:
        found = _moment(token + rest)
        if found is not None:
            tokens.position += 4
            return found
    return _moment(token)


def _moment(text: str) -> Parsed | None:
    text = text.replace("\\:", ":")
    if len(text) not in _MOMENTS:
        return None
    schema, date_format, make = _MOMENTS[len(text)]
    try:
        return Parsed(schema, make(date_format.parse(text)))
    except ValueError:
        return None


def _number(value: Decimal) -> Parsed:
    """Return the narrowest integer without loss, or a fraction as a 32-bit float if its magnitude fits."""
    exponent = int(value.as_tuple().exponent)
    if value.adjusted() < 19 and (exponent >= 0 or value == value.to_integral_value()):
        whole = int(value)
        for schema, kind, limit in _INTEGERS:
            if -limit <= whole < limit:
                return Parsed(schema, kind(whole))
    if exponent == 0:
        return Parsed(decimal_schema(0), value)
    double = float(value)
    if abs(to_float32(double)) != float("inf"):
        return Parsed(FLOAT32_SCHEMA, Float32(to_float32(double)))
    if abs(double) != float("inf"):
        return Parsed(FLOAT64_SCHEMA, double)
    return Parsed(decimal_schema(-exponent), value)


class Tokens:
    """A cursor over the tokens of a text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self._tokens = _TOKEN.findall(text)

    def more(self) -> bool:
        return self.position < len(self._tokens)

    def take(self) -> str:
        """Return the next token and move past it; an empty text at the end."""
        if not self.more():
            return ""
        self.position += 1
        return str(self._tokens[self.position - 1])

    def take_if(self, wanted: str) -> bool:
        """Move past the next token if it is ``wanted``, ignoring blanks around it. Always skips blank tokens before another."""
        while self.position + 1 < len(self._tokens) and is_blank(self._tokens[self.position]):
            self.position += 1
        if self.more() and trim(self._tokens[self.position]) == wanted:
            self.position += 1
            return True
        return False

    def join(self, count: int) -> str | None:
        """Return the next ``count`` tokens as one text without moving; None if there are fewer."""
        tokens = self._tokens[self.position : self.position + count]
        return "".join(tokens) if len(tokens) == count else None

    @property
    def previous(self) -> str:
        return str(self._tokens[self.position - 1]) if self.position else ""
