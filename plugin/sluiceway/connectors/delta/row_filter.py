"""Parses conditions on rows, such as ``country = 'NO' and amount >= 100``, for Arrow. No I/O.

delta-rs has no reader that applies a condition and keeps the order of rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sluiceway.errors import ConfigError

_TOKEN = re.compile(r"\s*(?:('(?:[^']|'')*')|(`[^`]+`)|([<>!=]=|<>|[<>=(),])|([\w.+:-]+))")
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "=": lambda one, other: one == other,
    "==": lambda one, other: one == other,
    "!=": lambda one, other: one != other,
    "<>": lambda one, other: one != other,
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
}
_RULE = "must be comparisons of columns with values, joined by and: =, !=, <, <=, >, >=, in (...), is null, is not null"


def row_filter(text: str, columns: pa.Schema) -> pc.Expression | None:
    """Return a condition as Arrow's expression, None for an empty text. Raises ConfigError."""
    if not text:
        return None
    parser = _Parser(text, columns)
    found = parser.condition()
    while parser.take_word("and"):
        found = found & parser.condition()
    if parser.tokens:
        raise parser.error()
    return found


class _Parser:
    """``tokens`` are what is left of the text."""

    def __init__(self, text: str, columns: pa.Schema) -> None:
        self._text = text
        self._columns = columns
        self.tokens: list[str] = []
        end = 0
        while text[end:].strip():
            match = _TOKEN.match(text, end)
            if match is None:
                raise self.error()
            self.tokens.append(match.group().strip())
            end = match.end()

    def error(self) -> ConfigError:
        return ConfigError("row.filter", self._text, _RULE)

    def take_word(self, word: str) -> bool:
        """Remove the next token and return True if it is this word, in any case."""
        if self.tokens and self.tokens[0].lower() == word:
            self.tokens.pop(0)
            return True
        return False

    def condition(self) -> pc.Expression:
        name = self._next().strip("`")
        if name not in self._columns.names:
            raise ConfigError("row.filter", self._text, f"names column {name}, which the table does not have")
        column: Any = pc.field(name)  # its stubs have comparisons return bool
        return self._condition(column, self._columns.field(name).type)

    def _condition(self, column: Any, type_: pa.DataType) -> pc.Expression:
        found: pc.Expression
        if self.take_word("is"):
            negated = self.take_word("not")
            if not self.take_word("null"):
                raise self.error()
            found = column.is_valid() if negated else column.is_null()
            return found
        if self.take_word("in"):
            found = column.isin(self._values(type_))
            return found
        compare = _COMPARE.get(self._next())
        if compare is None:
            raise self.error()
        found = compare(column, self._value(type_))
        return found

    def _values(self, type_: pa.DataType) -> pa.Array[Any]:
        if not self.take_word("("):
            raise self.error()
        values = [self._value(type_)]
        while self.take_word(","):
            values.append(self._value(type_))
        if not self.take_word(")"):
            raise self.error()
        return pa.array([each.as_py() for each in values], type_)

    def _value(self, type_: pa.DataType) -> Any:
        token = self._next()
        text = token[1:-1].replace("''", "'") if token.startswith("'") else token
        try:
            return constant(text, type_)
        except pa.ArrowException as error:
            raise ConfigError("row.filter", self._text, f"compares a column of type {type_} with {token}: {error}") from error

    def _next(self) -> str:
        if not self.tokens:
            raise self.error()
        return self.tokens.pop(0)


def constant(text: str, type_: pa.DataType) -> Any:
    """Return a text, as in conditions or as partition values in Delta's log, as a scalar of a type. Raises ArrowException."""
    if isinstance(type_, pa.TimestampType) and type_.tz is not None:
        zoned = re.search(r"(Z|[+-]\d\d:?\d\d)$", text)
        naive: Any = pa.timestamp("us", "UTC" if zoned else None)
        return pa.scalar(text).cast(naive).cast(type_)
    return pa.scalar(text).cast(type_)
