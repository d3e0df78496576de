"""Reads the default expressions of columns, as far as they are constants. No I/O."""

from __future__ import annotations

import re
from typing import Any

from sluiceway.connectors.cdc.columns import FieldType
from sluiceway.data import Struct

_LITERAL = re.compile(r"'((?:[^']|'')*)'")
_FUNCTION = re.compile(r"^\(?[A-Za-z0-9_.]+\((?:.+(?:, ?.+)*)?\)")

# What Debezium puts for a default that a function computes, by type.
_GENERATED = {
    **dict.fromkeys(("int2", "int4", "int8", "oid", "float4", "float8", "numeric", "money"), "0"),
    **dict.fromkeys(("text", "varchar", "bpchar", "char", "citext", "xml"), ""),
    "bool": "f",
    "date": "1970-01-01",
    "time": "00:00:00",
    "timetz": "00:00:00+00",
    "timestamp": "1970-01-01 00:00:00",
    "timestamptz": "1970-01-01 00:00:00+00",
    "uuid": "00000000-0000-0000-0000-000000000000",
    "interval": "00:00:00",
    "json": "{}",
    "jsonb": "{}",
}
_BOOLEANS = {"true": "t", "false": "f", "t": "t", "f": "f", "yes": "t", "no": "f", "1": "t", "0": "f"}


def default_of(expression: str | None, type_name: str, field: FieldType | None, *, enum: bool) -> Any:
    """Return a column's default as a value of its field, or None if there is none or it is no constant."""
    if expression is None or field is None or expression.upper().startswith("NULL"):
        return None
    text = _constant(expression, type_name, enum=enum)
    if text is None:
        return None
    try:
        value = field.convert(_BOOLEANS[text.lower()] if type_name == "bool" else text)
    except (ValueError, KeyError, ArithmeticError, IndexError, TypeError):
        return None
    return None if isinstance(value, Struct) else value


def _constant(expression: str, type_name: str, *, enum: bool) -> str | None:
    """Return the text of a constant expression, in the type's text format."""
    if type_name not in _GENERATED and type_name not in ("bit", "varbit") and not enum:
        return None
    if _FUNCTION.match(expression):
        return _GENERATED.get(type_name)
    literal = _LITERAL.search(expression)
    if literal is not None:
        return literal.group(1).replace("''", "'")
    return expression.partition("::")[0].strip("() ")
