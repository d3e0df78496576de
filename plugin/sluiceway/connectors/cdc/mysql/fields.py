"""The fields of columns by their declared types: schema, conversions of log and query values, and what stands for null. No I/O.

A value of the log has the types of ``binlog.rows``; one of a query is text, or bytes for binary types.
"""

from __future__ import annotations

import ipaddress
import struct
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from sluiceway.connectors.cdc import json_forms
from sluiceway.connectors.cdc.columns import FieldType
from sluiceway.connectors.cdc.json_forms import JsonForm, decimal_digits
from sluiceway.connectors.cdc.mysql import geometry
from sluiceway.connectors.cdc.mysql.binlog.charsets import decoder
from sluiceway.connectors.cdc.mysql.binlog.temporal import Calendar
from sluiceway.connectors.cdc.mysql.ddl.model import ColumnDefinition, JdbcType
from sluiceway.connectors.cdc.mysql.temporal_fields import temporal_field
from sluiceway.connectors.cdc.numbers import DOUBLE, PRECISE, binary_field, decimal_with_precision
from sluiceway.connectors.cdc.temporal import wrapped
from sluiceway.data import Schema, Type
from sluiceway.data.schema import (
    BOOLEAN_SCHEMA,
    FLOAT32_SCHEMA,
    FLOAT64_SCHEMA,
    INT16_SCHEMA,
    INT32_SCHEMA,
    INT64_SCHEMA,
    STRING_SCHEMA,
)

_DATA = "io.debezium.data."
_SINGLE = struct.Struct("f")
_SINGLE_DIGITS = 24  # bits of a FLOAT's precision; longer ones are stored as DOUBLE
_ZEROFILL, _UNSIGNED = " ZEROFILL", " UNSIGNED"
_DOUBLE = (json_forms.double, json_forms.double)
_STRING = (json_forms.text, json_forms.text)

UUID = Schema(Type.STRING, name=f"{_DATA}Uuid", version=1)
JSON = Schema(Type.STRING, name=f"{_DATA}Json", version=1)
YEAR = Schema(Type.INT32, name="io.debezium.time.Year", version=1)


@dataclass(frozen=True, slots=True)
class FieldSettings:
    """The handling modes of a config that decide about fields."""

    decimal_mode: str
    binary_mode: str
    time_mode: str
    bigint_unsigned_mode: str
    placeholder: bytes
    calendar: Calendar
    correct: bool = False


def field_type(column: ColumnDefinition, settings: FieldSettings) -> FieldType | None:
    """Return the field type of a column, or None for a column that records leave out."""
    found = _field_type(column, settings)
    if found is None or not column.optional or found.unavailable is not found.fallback:
        return found
    return replace(found, unavailable=None)  # null is better than a zero that is no value of the row


def _field_type(column: ColumnDefinition, settings: FieldSettings) -> FieldType | None:
    name = column.type_name.removesuffix(_ZEROFILL)
    if name != column.type_name and not name.endswith(_UNSIGNED):
        name += _UNSIGNED  # as ZEROFILL implies
    special = _BY_NAME.get(name)
    if special is not None:
        return special(column, settings)
    if name in ("FLOAT", "FLOAT UNSIGNED") and column.scale is None and (column.length or 0) <= _SINGLE_DIGITS:
        return _number(FLOAT32_SCHEMA, float, 0.0, single)
    temporal = temporal_field(column, settings.time_mode, settings.calendar)
    if temporal is not None:
        return temporal
    builder = _BY_JDBC_TYPE.get(column.jdbc_type)
    return None if builder is None else builder(column, settings)


def _same(value: Any) -> Any:
    return value


def _number(
    schema: Schema,
    convert: Callable[[Any], Any],
    zero: Any,
    snapshot: Callable[[Any], Any],
    forms: tuple[JsonForm | None, JsonForm | None] = (None, None),
) -> FieldType:
    return FieldType(schema, convert, zero, zero, snapshot, *forms)


def _integer(schema: Schema) -> Callable[[ColumnDefinition, FieldSettings], FieldType]:
    return lambda _column, _settings: _number(schema, int, 0, int, (json_forms.verbatim, json_forms.integer))


def single(text: str) -> float:
    """Return a number with the precision of FLOAT."""
    value: float = _SINGLE.unpack(_SINGLE.pack(float(text)))[0]
    return value


def _float(_column: ColumnDefinition, _settings: FieldSettings) -> FieldType:
    """FLOAT with digits is a double with the noise of its single precision."""
    return _number(FLOAT64_SCHEMA, float, 0.0, single)


def _double(_column: ColumnDefinition, _settings: FieldSettings) -> FieldType:
    return _number(FLOAT64_SCHEMA, float, 0.0, float, _DOUBLE)


def _real(_column: ColumnDefinition, settings: FieldSettings) -> FieldType:
    """Debezium makes REAL, which is a DOUBLE, a single-precision number."""
    if settings.correct:
        return _number(FLOAT64_SCHEMA, float, 0.0, float, _DOUBLE)
    return _number(FLOAT32_SCHEMA, lambda value: single(str(value)), 0.0, single)


def _bigint_unsigned(column: ColumnDefinition, settings: FieldSettings) -> FieldType:
    if settings.bigint_unsigned_mode == PRECISE:
        return _number(decimal_with_precision(0, column.length), Decimal, Decimal(0), Decimal)
    return _number(INT64_SCHEMA, wrapped, 0, lambda text: wrapped(int(text)))


def decimal_of(unscaled: int, scale: int) -> Decimal:
    """Return the decimal of an unscaled value, exactly."""
    sign, digits = (1, -unscaled) if unscaled < 0 else (0, unscaled)
    return Decimal((sign, tuple(map(int, str(digits))), -scale))


def unscaled_of(text: str) -> int:
    return int(text.replace(".", "", 1))


def _decimal(column: ColumnDefinition, settings: FieldSettings) -> FieldType:
    scale = column.scale or 0
    if settings.decimal_mode == DOUBLE:
        return FieldType(
            FLOAT64_SCHEMA,
            lambda raw: float(decimal_digits(raw, scale)),
            0.0,
            0.0,
            float,
            json_forms.UnscaledDouble(scale),
            json_forms.double,
        )
    if settings.decimal_mode == PRECISE:
        schema = decimal_with_precision(scale, column.length)
        zero = decimal_of(0, scale)
        return FieldType(
            schema,
            lambda raw: decimal_of(raw, scale),
            zero,
            zero,
            lambda text: decimal_of(unscaled_of(text), scale),
            json_forms.unscaled_decimal,
            json_forms.DecimalText(scale),
        )
    placeholder = settings.placeholder.decode("utf_8", "replace")
    return FieldType(
        STRING_SCHEMA,
        lambda raw: decimal_digits(raw, scale),
        "0",
        placeholder,
        lambda text: decimal_digits(unscaled_of(text), scale),
        json_forms.UnscaledText(scale),
        json_forms.Calculated(lambda text: f'"{decimal_digits(unscaled_of(text), scale)}"'),
    )


def _bit(column: ColumnDefinition, _settings: FieldSettings) -> FieldType:
    length = column.length or 1
    if length == 1:
        return _number(BOOLEAN_SCHEMA, bool, False, lambda data: any(data), (json_forms.truth, None))
    size = (length + 7) // 8
    schema = Schema(Type.BYTES, name=f"{_DATA}Bits", version=1, parameters={"length": str(length)})
    return FieldType(schema, lambda bits: bits.to_bytes(size, "little"), bytes(size), bytes(size), lambda data: bytes(data[::-1]))


def _boolean(_column: ColumnDefinition, _settings: FieldSettings) -> FieldType:
    return _number(BOOLEAN_SCHEMA, bool, False, lambda text: int(text) != 0, (json_forms.truth, json_forms.truth))


def _binary(column: ColumnDefinition, settings: FieldSettings) -> FieldType:
    length = column.length or 0

    def to_bytes(raw: Any) -> bytes:
        data = raw if isinstance(raw, bytes) else str(raw).encode()
        return data.ljust(length, b"\0") if column.jdbc_type == JdbcType.BINARY else data

    field = binary_field(settings.binary_mode, to_bytes, settings.placeholder)
    if field.schema.type is not Type.BYTES:
        return field
    return replace(field, json=json_forms.Calculated(lambda raw: json_forms.bytes_as_base64(to_bytes(raw))))


def _text(column: ColumnDefinition, settings: FieldSettings) -> FieldType:
    decode = decoder(column.charset or "utf8mb4")
    placeholder = settings.placeholder.decode("utf_8", "replace")

    def to_text(raw: str | bytes) -> str:
        return raw if isinstance(raw, str) else decode(raw)

    return FieldType(STRING_SCHEMA, to_text, "", placeholder, _query_text, *_STRING)


def _query_text(raw: str | bytes) -> str:
    return raw if isinstance(raw, str) else raw.decode("utf_8", "replace")


def _json(column: ColumnDefinition, settings: FieldSettings) -> FieldType:
    return replace(_text(column, settings), schema=JSON, fallback="{}")


def _uuid(_column: ColumnDefinition, settings: FieldSettings) -> FieldType:
    placeholder = settings.placeholder.decode("utf_8", "replace")
    return FieldType(UUID, lambda raw: str(uuid.UUID(bytes=raw.ljust(16, b"\0"))), "", placeholder, _query_text)


def _address(size: int) -> Callable[[ColumnDefinition, FieldSettings], FieldType]:
    def build(_column: ColumnDefinition, settings: FieldSettings) -> FieldType:
        placeholder = settings.placeholder.decode("utf_8", "replace")
        return FieldType(
            STRING_SCHEMA, lambda raw: str(ipaddress.ip_address(raw.ljust(size, b"\0"))), "", placeholder, _query_text
        )

    return build


def options(column: ColumnDefinition) -> list[str]:
    """Return the values of an ENUM or SET, as Debezium unquotes them: a comma in a value has a backslash before it."""
    unquoted = (literal[1:-1] for literal in column.enum_values)
    return [value.replace(",", "\\,").replace("\\'", "'").replace("''", "'") for value in unquoted]


def _enum(column: ColumnDefinition, settings: FieldSettings) -> FieldType:
    values = ["", *options(column)]
    count = len(values)
    placeholder = settings.placeholder.decode("utf_8", "replace")
    return FieldType(
        _allowed("Enum", values[1:]),
        lambda number: values[number] if number < count else "",
        "",
        placeholder,
        _query_text,
        json_forms.Remembered(lambda number: json_forms.quote(values[number] if number < count else "")),
        json_forms.text,
    )


def _set(column: ColumnDefinition, settings: FieldSettings) -> FieldType:
    values = options(column)
    memo: dict[int, str] = {}

    def members(bits: int) -> str:
        found = memo.get(bits)
        if found is None:
            found = memo[bits] = ",".join(value for index, value in enumerate(values) if bits >> index & 1)
        return found

    return FieldType(_allowed("EnumSet", values), members, "", settings.placeholder.decode("utf_8", "replace"), _query_text)


def _allowed(name: str, values: list[str]) -> Schema:
    return Schema(Type.STRING, name=f"{_DATA}{name}", version=1, parameters={"allowed": ",".join(values)})


def _year(_column: ColumnDefinition, settings: FieldSettings) -> FieldType:
    def year(value: Any) -> int:
        number = int(value)
        return number if number >= 100 or not number or not settings.calendar.adjusts_years else _adjusted(number)

    return FieldType(YEAR, year, 0, 0, year)


def _adjusted(year: int) -> int:
    return year + (2000 if year < 70 else 1900)


def _point(_column: ColumnDefinition, _settings: FieldSettings) -> FieldType:
    return FieldType(geometry.POINT, geometry.point, None, None, geometry.point)


def _geometry(_column: ColumnDefinition, _settings: FieldSettings) -> FieldType:
    empty = geometry.geometry(geometry.EMPTY)
    return FieldType(geometry.GEOMETRY, geometry.geometry, empty, empty, geometry.geometry)


def _vector(_column: ColumnDefinition, _settings: FieldSettings) -> FieldType:
    schema = Schema.array(FLOAT32_SCHEMA, name=f"{_DATA}FloatVector", version=1)

    def numbers(data: bytes) -> list[float]:
        return list(struct.unpack(f"<{len(data) // 4}f", data))

    return FieldType(schema, numbers, [], [], numbers)


Builder = Callable[[ColumnDefinition, FieldSettings], FieldType]

_GEOMETRIES = (
    "GEOMETRY",
    "LINESTRING",
    "POLYGON",
    "MULTIPOINT",
    "MULTILINESTRING",
    "MULTIPOLYGON",
    "GEOMETRYCOLLECTION",
    "GEOMCOLLECTION",
)

_BY_NAME: dict[str, Builder] = {
    "JSON": _json,
    "POINT": _point,
    **dict.fromkeys(_GEOMETRIES, _geometry),
    "YEAR": _year,
    "ENUM": _enum,
    "SET": _set,
    **dict.fromkeys(("SMALLINT UNSIGNED", "INT2 UNSIGNED"), _integer(INT32_SCHEMA)),
    **dict.fromkeys(("INT UNSIGNED", "INTEGER UNSIGNED", "INT4 UNSIGNED"), _integer(INT64_SCHEMA)),
    **dict.fromkeys(("BIGINT UNSIGNED", "INT8 UNSIGNED"), _bigint_unsigned),
    "VECTOR": _vector,
    "UUID": _uuid,
    "INET4": _address(4),
    "INET6": _address(16),
}

_BY_JDBC_TYPE: dict[int, Builder] = {
    JdbcType.BIT: _bit,
    JdbcType.BOOLEAN: _boolean,
    JdbcType.SMALLINT: _integer(INT16_SCHEMA),
    JdbcType.INTEGER: _integer(INT32_SCHEMA),
    JdbcType.BIGINT: _integer(INT64_SCHEMA),
    JdbcType.FLOAT: _float,
    JdbcType.DOUBLE: _double,
    JdbcType.REAL: _real,
    JdbcType.DECIMAL: _decimal,
    JdbcType.NUMERIC: _decimal,
    **dict.fromkeys((JdbcType.BINARY, JdbcType.VARBINARY, JdbcType.BLOB), _binary),
    **dict.fromkeys((JdbcType.CHAR, JdbcType.VARCHAR, JdbcType.NCHAR, JdbcType.NVARCHAR), _text),
}
