"""Reads the default expressions of columns, as far as they are constants. No I/O."""

from __future__ import annotations

import re
from typing import Any

from sluiceway.connectors.cdc.columns import FieldType
from sluiceway.data import Struct

# A literal with casts alone: of an expression with other parts, it is not the value.
_LITERAL = re.compile(r"""\(*(?P<form>[BE]?)'(?P<text>(?:[^']|'')*)'(?:\)*::[\w .,"()[\]]+)*(?: COLLATE [\w."]+)?\)*""")
_NUMBER = re.compile(r"\(*(?P<text>-?[\d.]+|true|false)(?:\)*::[\w .,\"()]+)*\)*")
_FUNCTION = re.compile(r"^\(?[A-Za-z0-9_.]+\((?:.+(?:, ?.+)*)?\)")

# What Debezium puts for a default that a function computes, by type.
_GENERATED = {
    **dict.fromkeys(("int2", "int4", "int8", "float4", "float8", "numeric"), "0"),
    **dict.fromkeys(("text", "varchar", "bpchar", "citext", "xml"), ""),
    "bool": "f",
    "date": "1970-01-01",
    "time": "00:00:00",
    "timestamp": "1970-01-01 00:00:00",
    "timestamptz": "1970-01-01 00:00:00+00",
    "uuid": "00000000-0000-0000-0000-000000000000",
    "interval": "00:00:00",
    "json": "{}",
    "jsonb": "{}",
}
_INFINITE_DATES = {"infinity": 169_560_311, "-infinity": -170_999_002}  # Java's largest and smallest dates, cut to 32 bits
_BOOLEANS = {"true": "t", "false": "f", "t": "t", "f": "f", "yes": "t", "no": "f", "1": "t", "0": "f"}


def default_of(expression: str | None, type_name: str, field: FieldType | None, *, enum: bool, correct: bool) -> Any:
    """Return a column's default as a value of its field, or None if there is none or it is no constant.

    Unless ``correct``, the default of some functions is a zero, as in Debezium's schemas.
    """
    if expression is None or field is None or expression.upper().startswith("NULL"):
        return None
    text = _constant(expression, type_name, enum=enum, correct=correct)
    if text is None:
        return None
    try:
        value = field.convert(_BOOLEANS[text.lower()] if type_name == "bool" else text)
    except (ValueError, KeyError, ArithmeticError, IndexError, TypeError):
        return None
    if type_name == "date" and isinstance(value, int) and not correct:
        return _INFINITE_DATES.get(text, value)
    return None if isinstance(value, Struct) else value


def _constant(expression: str, type_name: str, *, enum: bool, correct: bool) -> str | None:
    """Return the text of a constant expression, in the type's text format."""
    if type_name not in _GENERATED and type_name not in ("bit", "varbit") and not enum:
        return None
    if _FUNCTION.match(expression) or (type_name == "date" and expression == "CURRENT_DATE"):
        return None if correct else _GENERATED.get(type_name)
    literal = _LITERAL.fullmatch(expression)
    if literal is not None:
        text = literal["text"].replace("''", "'")
        return text.replace("\\\\", "\\") if literal["form"] == "E" else text
    number = _NUMBER.fullmatch(expression)
    if number is not None:
        return number["text"]
    # Debezium takes the name of a function such as CURRENT_USER for a text.
    return expression if expression.isidentifier() and not correct else None
