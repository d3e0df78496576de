"""Orders and compares the columns of keys as MariaDB and MySQL sort them. No I/O."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from decimal import Decimal
from typing import Any

from sluiceway.connectors.cdc.key_order import Compare, KeyColumn, KeyOrder
from sluiceway.connectors.cdc.mysql.connection import SORTED_BYTES, quoted
from sluiceway.connectors.cdc.mysql.ddl.model import ColumnDefinition, JdbcType, TableDefinition
from sluiceway.connectors.cdc.mysql.fields import options
from sluiceway.errors import ConnectError

_ENUM, _SET, _YEAR, _JSON = "ENUM", "SET", "YEAR", "JSON"
_COMPARED = frozenset({_JSON, "UUID", "INET4", "INET6"})  # of the types that JDBC has no code for

_INTEGERS = frozenset({JdbcType.SMALLINT, JdbcType.INTEGER, JdbcType.BIGINT})
_DECIMALS = frozenset({*_INTEGERS, JdbcType.BOOLEAN, JdbcType.DECIMAL, JdbcType.NUMERIC})
_FLOATS = frozenset({JdbcType.FLOAT, JdbcType.REAL, JdbcType.DOUBLE})
_BYTES = frozenset({JdbcType.BINARY, JdbcType.VARBINARY, JdbcType.BLOB})
_MOST_INDEXED = 3072  # bytes of an index, and so characters
_CHARACTER_BYTES = 4
_MOST_LISTED, _MOST_MEMBERS = 256, 64
_PLAIN = re.compile(r"[A-Za-z0-9 .:_+/-]*")
_BITS = {"true": 1, "false": 0}

_KINDS = {
    JdbcType.SMALLINT: "Integer",
    JdbcType.INTEGER: "Integer",
    JdbcType.BIGINT: "Long",
    JdbcType.DECIMAL: "BigDecimal",
    JdbcType.BIT: "Long",
}


def is_integer(column: ColumnDefinition) -> bool:
    """Tell whether a column has whole numbers, of which any may stand between two values. A YEAR has not: 70 means 1970."""
    return column.jdbc_type in _INTEGERS and _word(column) != _YEAR


def java_class(column: ColumnDefinition) -> str:
    """Return the Java class of a column's values in keys."""
    return "Long" if _word(column) in (_ENUM, _SET) else _KINDS.get(column.jdbc_type, "String")


def may_be_long(column: ColumnDefinition) -> bool:
    """Tell whether a column may have longer values than a whole index, which the server would have to sort."""
    sized = column.uses_charset or column.jdbc_type in _BYTES or _word(column) == _JSON or _is_opaque(column)
    return sized and (column.length is None or column.length > _MOST_INDEXED)


def too_long(column: ColumnDefinition) -> str:
    """Return the condition that the server sorts a value only by its beginning.

    It cuts characters or their weights, depending on the collation and on the way it sorts.
    """
    found = _key_column(column, ())
    value = found.sorted_by or found.name
    weights = f"coalesce(octet_length(weight_string({value})), {SORTED_BYTES})"  # null if it is larger than a packet
    return f"greatest({_CHARACTER_BYTES} * char_length({value}), {weights}) >= {SORTED_BYTES}"


def selected(table: TableDefinition, name: str) -> str:
    """Return the expression to read a column: a FLOAT of the key with all its digits, because the log has them, too."""
    column = table.column(name)
    exact = column is not None and column.jdbc_type == JdbcType.FLOAT and column.name in table.primary_key
    return f"{quoted(name)} + 0e0" if exact else quoted(name)


def key_order(table: TableDefinition, key: Sequence[str], prefixed: Collection[str] = ()) -> KeyOrder:
    """Return the order of a table's columns. Raises ConnectError if there is no such column.

    Args:
        prefixed: the columns, in lower case, of which an index has only the first characters.
    """
    return KeyOrder(tuple(_key_column(column, prefixed) for column in key_columns(table, key)), nulls_first=True)


def key_columns(table: TableDefinition, key: Sequence[str]) -> list[ColumnDefinition]:
    """Return the columns of a key. Raises ConnectError if there is no such column."""
    found = []
    for name in key:
        column = table.column(name)
        if column is None:
            raise ConnectError(f"The table {table.id} has no column {name}. Name one of its columns as surrogate-key.")
        found.append(column)
    return found


def _key_column(column: ColumnDefinition, prefixed: Collection[str]) -> KeyColumn:
    found = quoted(column.name)
    value, compare, sorted_by = found, _operators(found, literal), ""
    if _word(column) == _ENUM:
        labels = options(column)
        value, compare = f"cast({found} as unsigned)", _enum(found, labels)
    elif _word(column) == _SET:
        members = options(column)
        # A comparison of a SET with a number would be one of inexact floats.
        value = f"cast({found} as unsigned)"
        compare = _operators(value, lambda each: _number(each, lambda text: _members(members, text)))
        if len(members) == _MOST_MEMBERS:  # without an index, MySQL sorts the last one as the sign of a number
            sorted_by = value
    elif _word(column) == _JSON:  # MySQL compares a document with a text by their types, and does not sort documents
        value = sorted_by = f"cast({found} as char)"
        compare = _operators(value, literal)
    elif _is_opaque(column):  # MySQL sorts them, and refuses to compare them
        value = sorted_by = f"hex({found})"
        compare = _operators(value, literal)
    elif column.jdbc_type == JdbcType.BIT:
        value, compare = f"cast({found} as unsigned)", _operators(found, _bits)
    elif column.jdbc_type in _FLOATS:
        value = f"{found} + 0e0"
        # MySQL takes 1000000 for more than a FLOAT(9,3) can be, although that is what it stores of 999999.999.
        compare = _operators(found if column.scale is None else value, _float)
    elif column.uses_charset and column.name.lower() in prefixed:
        # The server would read a range of beginnings, which do not have the order of the texts: "c" < "C", but "cz" > "Ca".
        compare = _operators(f"concat({found})", literal)
    elif column.jdbc_type in _DECIMALS:  # the server compares a text with them as inexact floats
        compare = _operators(found, _decimal)
    return KeyColumn(found, value, compare, optional=column.optional, sorted_by=sorted_by)


def _is_opaque(column: ColumnDefinition) -> bool:
    """Whether a column has geometries or vectors."""
    return column.jdbc_type == JdbcType.OTHER and _word(column) not in _COMPARED


def _word(column: ColumnDefinition) -> str:
    """Return a type's name without what follows it, such as BINARY or ZEROFILL."""
    return column.type_name.partition(" ")[0]


def literal(value: Any) -> str:
    """Return a literal of a text or of bytes, whatever the session's SQL mode says of quotes and backslashes."""
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    text = str(value)
    return f"'{text}'" if _PLAIN.fullmatch(text) else f"_utf8mb4 x'{text.encode().hex()}'"


def _operators(name: str, written: Callable[[Any], object]) -> Compare:
    return lambda operator, value: f"{name} {operator} {written(value)}"


def _enum(name: str, labels: Sequence[str]) -> Compare:
    """Compare the number of a label. Of an ENUM, the server uses an index only for equal values."""

    def compare(operator: str, value: Any) -> str:
        number = _number(value, lambda text: _label(labels, text))
        listed = {
            "=": range(number, number + 1),
            "<": range(number),
            "<=": range(number + 1),
            ">": range(number + 1, len(labels) + 1),
        }[operator]
        if len(listed) > _MOST_LISTED:
            return f"{name} {operator} {number}"
        return f"{name} in ({', '.join(map(str, listed))})" if listed else "1 = 0"

    return compare


def _label(labels: Sequence[str], text: str) -> int:
    return labels.index(text) + 1 if text in labels else 0


def _members(members: Sequence[str], text: str) -> int:
    return sum(1 << members.index(each) for each in text.split(",") if each in members)


def _number(value: Any, named: Callable[[str], int]) -> int:
    """Return the number in a key, or that of a name, as keys of Debezium and of earlier versions have it."""
    text = str(value)
    return int(text) if text.isdigit() else named(text)


def _bits(value: Any) -> int:
    if isinstance(value, bytes):
        return int.from_bytes(value, "big")
    return _number(value, lambda text: _BITS.get(text, 0))


def _float(value: Any) -> str:
    text = repr(float(value))
    return text if "e" in text else f"{text}e0"  # without an exponent, it would be a DECIMAL


def _decimal(value: Any) -> str:
    return format(Decimal(str(value)), "f")
