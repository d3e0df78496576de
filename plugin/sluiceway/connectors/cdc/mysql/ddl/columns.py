"""Parses column definitions with their defaults and constraints. No I/O."""

from __future__ import annotations

from dataclasses import dataclass

from sluiceway.connectors.cdc.mysql.ddl.clauses import skip_attribute
from sluiceway.connectors.cdc.mysql.ddl.data_types import DataType, read_data_type
from sluiceway.connectors.cdc.mysql.ddl.model import ColumnDefinition, JdbcType
from sluiceway.connectors.cdc.mysql.ddl.tokens import Kind, NotUnderstoodError, TokenReader

CURRENT_TIMESTAMP = frozenset({"CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP"})
_CURRENT_DAY_OR_TIME = frozenset({"CURDATE", "CURTIME"})  # their text is in schema changes, as in Debezium's; they have no value
_TEMPORAL = frozenset({JdbcType.DATE, JdbcType.TIME, JdbcType.TIMESTAMP, JdbcType.TIMESTAMP_WITH_TIMEZONE})
_HEX = "xX"
_EPOCH = "1970-01-01 00:00:00"  # what Debezium records for CURRENT_TIMESTAMP


@dataclass
class ParsedColumn:
    """A column and what its definition says about keys."""

    definition: ColumnDefinition
    primary: bool = False
    unique: bool = False


@dataclass
class _Attributes:
    optional: bool | None = None
    has_default: bool = False
    default: str | None = None
    comment: str | None = None
    auto_incremented: bool = False
    primary: bool = False
    unique: bool = False


def read_column(reader: TokenReader, name: str) -> ParsedColumn:
    """Read a definition after the column's name, up to the comma or parenthesis after it, or FIRST or AFTER.

    Raises:
        NotUnderstoodError: the definition has an unknown form.
    """
    serial = reader.at("SERIAL")
    type_ = read_data_type(reader)
    found = _Attributes()
    if serial:
        _serial(found)
    while not reader.at_item_end and not reader.at_any(("FIRST", "AFTER", "PARTITION", "REMOVE")):
        _read_attribute(reader, found, type_)
    optional = found.optional is not False and not found.primary
    definition = ColumnDefinition(
        name=name,
        jdbc_type=type_.jdbc_type,
        type_name=type_.name,
        length=type_.length,
        scale=type_.scale,
        charset=type_.charset or (charset_of(type_.collation) if type_.collation else None),
        optional=optional,
        auto_incremented=found.auto_incremented,
        comment=found.comment,
        has_default=optional or found.has_default,
        default=found.default,
        enum_values=type_.values,
    )
    return ParsedColumn(definition, found.primary, found.unique)


def charset_of(collation: str) -> str:
    """Return the charset that a collation's name begins with."""
    return "binary" if collation.lower() == "binary" else collation.lower().partition("_")[0]


def _serial(found: _Attributes) -> None:
    if found.optional is None:
        found.optional = False
    found.unique = found.auto_incremented = True


def _read_attribute(reader: TokenReader, found: _Attributes, type_: DataType) -> None:
    if reader.skip("NOT", "NULL"):
        found.optional = False
    elif reader.skip("NULL"):
        found.optional = True
    elif reader.skip("DEFAULT"):
        found.has_default, found.default = read_default(reader, type_.jdbc_type)
    elif reader.skip("AUTO_INCREMENT"):
        found.auto_incremented = True
    elif not _read_key(reader, found):
        _read_other(reader, found, type_)


def _read_key(reader: TokenReader, found: _Attributes) -> bool:
    """Read an attribute that makes the column a key, if it is next."""
    if reader.skip("SERIAL", "DEFAULT", "VALUE"):
        _serial(found)
    elif reader.skip("UNIQUE"):
        found.unique = True
        reader.skip("KEY")
    elif reader.skip("PRIMARY", "KEY") or reader.skip("KEY"):
        found.primary = True
    else:
        return False
    return True


def _read_other(reader: TokenReader, found: _Attributes, type_: DataType) -> None:
    if reader.skip("COMMENT"):
        found.comment = reader.take().text[1:-1]
    elif reader.skip("ON", "UPDATE"):
        _read_function(reader)
        # Debezium's grammar has ON UPDATE behind DEFAULT CURRENT_TIMESTAMP as a part of the default.
        found.auto_incremented = found.auto_incremented or found.default != _EPOCH
    elif reader.skip("CHARACTER", "SET") or reader.skip("CHARSET"):
        type_.charset = reader.identifier()
    elif reader.skip("COLLATE"):
        type_.collation = reader.identifier()
    elif not skip_attribute(reader):
        raise NotUnderstoodError(f"attribute of a column expected at {reader.next.text!r}")


def read_default(reader: TokenReader, jdbc_type: int) -> tuple[bool, str | None]:
    """Read the value after DEFAULT of a column of a type. Return whether the column has a default, and its text.

    NULL, expressions, and hexadecimal literals have no text.
    """
    if reader.skip("NULL"):
        return False, None
    if reader.at("("):
        reader.parenthesized()
        return True, None
    sign = reader.take().text if reader.at("-") or reader.at("+") else ""
    token = reader.next
    if token.kind is Kind.WORD and token.text.startswith("_") and reader.peek().kind is Kind.STRING:
        reader.take()  # the introducer of a charset
        token = reader.next
    if token.kind is Kind.WORD and token.upper not in ("TRUE", "FALSE"):
        text = _function_default(reader)
        return True, text if jdbc_type in _TEMPORAL else None
    reader.take()
    if token.kind is Kind.STRING:
        return True, sign + token.text[1:-1]
    if token.kind is Kind.BITS:
        if any(letter in token.text[:2] for letter in _HEX):
            return True, None
        return True, token.text[2:-1] if token.text[1] == "'" else token.text
    return True, sign + token.text


def _function_default(reader: TokenReader) -> str | None:
    name = reader.next
    called = reader.peek().text == "("
    _read_function(reader)
    if name.upper in CURRENT_TIMESTAMP:
        return _EPOCH
    return f"{name.text}{'()' * called}" if name.upper in _CURRENT_DAY_OR_TIME else None


def _read_function(reader: TokenReader) -> None:
    reader.take()
    while reader.skip("."):
        reader.take()
    if reader.at("("):
        reader.parenthesized()
