"""Converts the defaults of columns, which the model has as text, to values of their fields. No I/O."""

from __future__ import annotations

import math
import re
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from sluiceway.connectors.cdc.columns import FieldType
from sluiceway.connectors.cdc.mysql.binlog.temporal import Invalid
from sluiceway.connectors.cdc.mysql.ddl.model import ColumnDefinition, JdbcType
from sluiceway.connectors.cdc.mysql.fields import FieldSettings
from sluiceway.connectors.cdc.mysql.temporal_fields import EPOCH
from sluiceway.connectors.cdc.mysql.temporal_text import parse_date, parse_datetime, parse_time, parse_timestamp
from sluiceway.connectors.cdc.temporal import LONG_MAX, LONG_MIN, iso_fraction, iso_timestamp
from sluiceway.data import Type
from sluiceway.data.logical import at_scale, unscaled
from sluiceway.errors import DataError

_INTRODUCER = re.compile(r"^_[A-Za-z0-9]+'(.*)'$")
_EPOCH_TEXT = "1970-01-01 00:00:00"
_INTEGERS = frozenset({Type.INT16, Type.INT32, Type.INT64})
_TRIMMED = frozenset(
    {
        JdbcType.DATE,
        JdbcType.TIMESTAMP,
        JdbcType.TIMESTAMP_WITH_TIMEZONE,
        JdbcType.TIME,
        JdbcType.BOOLEAN,
        JdbcType.BIT,
        JdbcType.SMALLINT,
        JdbcType.INTEGER,
        JdbcType.BIGINT,
        JdbcType.FLOAT,
        JdbcType.REAL,
        JdbcType.DOUBLE,
        JdbcType.NUMERIC,
        JdbcType.DECIMAL,
    }
)


def default_value(column: ColumnDefinition, field: FieldType, settings: FieldSettings) -> Any:
    """Return a column's default as a value of its field, or None if it has none or the text is no value of the type."""
    text = column.default
    if text is None:
        return None
    if column.jdbc_type in _TRIMMED:
        text = text.strip()
    match = _INTRODUCER.match(text)
    if match is not None:
        text = match.group(1)
    try:
        return _value(column, field, settings, text)
    except (ValueError, ArithmeticError, DataError, IndexError):
        return None


def _value(column: ColumnDefinition, field: FieldType, settings: FieldSettings, text: str) -> Any:
    jdbc = column.jdbc_type
    if jdbc in (JdbcType.DATE, JdbcType.TIMESTAMP, JdbcType.TIME, JdbcType.TIMESTAMP_WITH_TIMEZONE):
        return _temporal(column, field, settings, text)
    if jdbc in _TRIMMED:
        return _numeric(column, field, {"true": "1", "false": "0"}.get(text.lower(), text))
    if field.schema.type is Type.STRUCT:
        return None
    if jdbc in (JdbcType.BINARY, JdbcType.VARBINARY, JdbcType.BLOB):
        return field.convert(text.encode())
    return text


def _numeric(column: ColumnDefinition, field: FieldType, text: str) -> Any:
    jdbc = column.jdbc_type
    if jdbc in (JdbcType.DECIMAL, JdbcType.NUMERIC):
        scale = column.scale or 0
        return field.convert(unscaled(at_scale(Decimal(text), scale, ROUND_HALF_UP), scale))
    if jdbc == JdbcType.BIT:
        bits = int(text, 2) if (column.length or 1) > 1 else int(text)
        return field.convert(bits)
    if field.schema.type in _INTEGERS:
        return _integer(text) if column.type_name.partition(" ")[0] != "YEAR" else field.convert(int(text))
    if jdbc in (JdbcType.FLOAT, JdbcType.DOUBLE, JdbcType.REAL):
        return float(text)
    if jdbc == JdbcType.BOOLEAN or field.schema.type is Type.BOOLEAN:
        return _integer(text) != 0
    return Decimal(text)  # BIGINT UNSIGNED as a decimal


def _integer(text: str) -> int:
    """Round like Java: through a double, into the range of a long."""
    return max(LONG_MIN, min(LONG_MAX, math.floor(float(text) + 0.5)))


def _temporal(column: ColumnDefinition, field: FieldType, settings: FieldSettings, text: str) -> Any:
    if settings.correct and text == _EPOCH_TEXT:
        return None  # the time of the statement, see ``ddl.columns``
    if column.jdbc_type == JdbcType.TIME:
        return field.convert(parse_time(text.rpartition(" ")[2]))
    if text == "0":
        text = "0000-00-00 00:00:00"
    if column.jdbc_type == JdbcType.DATE:
        return field.convert(parse_date(text, settings.calendar))
    if column.jdbc_type == JdbcType.TIMESTAMP:
        return field.convert(parse_datetime(text, settings.calendar))
    micros = parse_timestamp(text)
    if isinstance(micros, Invalid) or text == _EPOCH_TEXT:
        return None if column.optional else EPOCH
    seconds, fraction = divmod(micros, 1_000_000)
    digits = f".{fraction:06}"[: 1 + column.length] if column.length else iso_fraction(fraction)
    return iso_timestamp(seconds, digits) + "Z"
