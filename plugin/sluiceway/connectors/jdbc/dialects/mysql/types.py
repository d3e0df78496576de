"""Maps MySQL's and MariaDB's types from and to Connect's. No I/O."""

from __future__ import annotations

import re
from typing import Any

from sluiceway.connectors.jdbc.columns import OTHER, TEXT, ColumnType, Kind
from sluiceway.connectors.jdbc.dialects.values import Convert
from sluiceway.data import Type
from sluiceway.data.logical import DATE, TIME, TIMESTAMP
from sluiceway.errors import DataError

COLUMN_TYPES: dict[Type | str, str] = {
    Type.INT8: "TINYINT",
    Type.INT16: "SMALLINT",
    Type.INT32: "INT",
    Type.INT64: "BIGINT",
    Type.FLOAT32: "FLOAT",
    Type.FLOAT64: "DOUBLE",
    Type.BOOLEAN: "BOOLEAN",
    Type.STRING: "LONGTEXT",
    Type.BYTES: "LONGBLOB",
    DATE: "DATE",
    TIME: "TIME(3)",
    TIMESTAMP: "DATETIME(3)",
    "io.debezium.time.Timestamp": "DATETIME(3)",
    "io.debezium.time.MicroTimestamp": "DATETIME(6)",
    "io.debezium.time.NanoTimestamp": "DATETIME(6)",
    "io.debezium.time.ZonedTimestamp": "DATETIME(6)",
    "io.debezium.time.Date": "DATE",
    "io.debezium.time.Time": "TIME(3)",
    "io.debezium.time.MicroTime": "TIME(6)",
    "io.debezium.time.NanoTime": "TIME(6)",
    "io.debezium.time.ZonedTime": "TIME(6)",
    "io.debezium.data.Json": "JSON",
    "io.debezium.data.Uuid": "CHAR(36)",
    "io.debezium.data.Xml": "LONGTEXT",
    "io.debezium.data.VariableScaleDecimal": "DECIMAL(65,30)",
}
# MySQL's indexes need columns of limited length.
KEY_COLUMN_TYPES = {Type.STRING: "VARCHAR(255)", Type.BYTES: "VARBINARY(255)"}

_DIGITS, _SCALE = 65, 30

_SIGNED = {
    "tinyint": Kind.INT8,
    "smallint": Kind.INT16,
    "mediumint": Kind.INT32,
    "int": Kind.INT32,
    "integer": Kind.INT32,
    "bigint": Kind.INT64,
}
_UNSIGNED = {
    "tinyint": Kind.INT16,
    "smallint": Kind.INT32,
    "mediumint": Kind.INT32,
    "int": Kind.INT64,
    "integer": Kind.INT64,
    "bigint": Kind.INT64,
}
_KINDS = {
    "float": Kind.FLOAT32,
    "double": Kind.FLOAT64,
    "date": Kind.DATE,
    "year": Kind.INT32,
    "binary": Kind.BYTES,
    "varbinary": Kind.BYTES,
    "tinyblob": Kind.BYTES,
    "blob": Kind.BYTES,
    "mediumblob": Kind.BYTES,
    "longblob": Kind.BYTES,
    "geometry": Kind.BYTES,
    "point": Kind.BYTES,
    "linestring": Kind.BYTES,
    "polygon": Kind.BYTES,
}
_TEXTS = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set", "json", "uuid", "inet6"})
_TYPE = re.compile(r"^(?P<name>\w+)(?:\((?P<arguments>.*)\))?(?P<rest>[^()]*)$", re.DOTALL)

_INT64_MAX = 0x7FFF_FFFF_FFFF_FFFF


def parse_type(text: str) -> ColumnType:
    """Return the type that ``information_schema`` describes: ``int(10) unsigned``, ``decimal(10,2)``, ``bit(1)``."""
    parts = _TYPE.match(text.strip().lower())
    if parts is None:
        return OTHER
    name, rest = parts["name"], parts["rest"]
    arguments = [int(each) for each in (parts["arguments"] or "").split(",") if each.strip().isdigit()]
    if name in _SIGNED:
        return ColumnType((_UNSIGNED if "unsigned" in rest else _SIGNED)[name])
    if name in ("decimal", "numeric"):
        precision, scale = [*arguments, *(10, 0)[len(arguments) :]][:2]
        return ColumnType(Kind.DECIMAL, precision, scale)
    if name in ("datetime", "timestamp"):
        return ColumnType(Kind.TIMESTAMP, fraction=arguments[0] if arguments else 0, zoned=name == "timestamp")
    if name == "time":
        return ColumnType(Kind.TIME, fraction=arguments[0] if arguments else 0)
    if name == "bit":
        return ColumnType(Kind.INT8 if arguments in ([], [1]) else Kind.BYTES, precision=arguments[0] if arguments else 1)
    if name in _TEXTS:
        return TEXT
    return ColumnType(_KINDS[name]) if name in _KINDS else OTHER


def decimal_type(precision: int | None, scale: int) -> str:
    """Return DECIMAL with as many digits as MySQL allows, unless the schema limits them."""
    return f"DECIMAL({min(precision or _DIGITS, _DIGITS)},{min(scale, _SCALE)})"


def reader(column_type: ColumnType) -> Convert | None:
    """Return the function for bit(1), which comes as bytes, and for integers, which may be unsigned."""
    if column_type.kind is Kind.INT8 and column_type.precision == 1:
        return _bit
    return _int64 if column_type.kind is Kind.INT64 else None


def _bit(value: Any) -> Any:
    return int.from_bytes(value, "big") if isinstance(value, bytes) else value


def _int64(value: Any) -> Any:
    if value > _INT64_MAX:
        raise DataError(
            f"{value} of an unsigned bigint column does not fit into 64 signed bits; cast it to decimal(20) in a query."
        )
    return value
