"""Maps PostgreSQL's types from and to Connect's. No I/O."""

from __future__ import annotations

import re

from sluiceway.connectors.jdbc.columns import OTHER, TEXT, ColumnType, Kind
from sluiceway.data import Type
from sluiceway.data.logical import DATE, TIME, TIMESTAMP

COLUMN_TYPES: dict[Type | str, str] = {
    Type.INT8: "SMALLINT",
    Type.INT16: "SMALLINT",
    Type.INT32: "INTEGER",
    Type.INT64: "BIGINT",
    Type.FLOAT32: "REAL",
    Type.FLOAT64: "DOUBLE PRECISION",
    Type.BOOLEAN: "BOOLEAN",
    Type.STRING: "TEXT",
    Type.BYTES: "BYTEA",
    DATE: "DATE",
    TIME: "TIME(3)",
    TIMESTAMP: "TIMESTAMP(3)",
    "io.debezium.time.Timestamp": "TIMESTAMP(3)",
    "io.debezium.time.MicroTimestamp": "TIMESTAMP(6)",
    "io.debezium.time.NanoTimestamp": "TIMESTAMP(6)",
    "io.debezium.time.ZonedTimestamp": "TIMESTAMP(6) WITH TIME ZONE",
    "io.debezium.time.Date": "DATE",
    "io.debezium.time.Time": "TIME(3)",
    "io.debezium.time.MicroTime": "TIME(6)",
    "io.debezium.time.NanoTime": "TIME(6)",
    "io.debezium.time.ZonedTime": "TIME(6) WITH TIME ZONE",
    "io.debezium.data.Json": "JSON",
    "io.debezium.data.Uuid": "UUID",
    "io.debezium.data.Xml": "XML",
    "io.debezium.data.VariableScaleDecimal": "NUMERIC",
}

_KINDS = {
    "boolean": Kind.BOOLEAN,
    "smallint": Kind.INT16,
    "integer": Kind.INT32,
    "bigint": Kind.INT64,
    "oid": Kind.INT64,
    "real": Kind.FLOAT32,
    "double precision": Kind.FLOAT64,
    "bytea": Kind.BYTES,
    "date": Kind.DATE,
}
_TEXTS = frozenset({"text", "character varying", "character", "name", "citext", '"char"', "bpchar"})
_TYPE = re.compile(r"^(?P<name>[^(\[]+?)(?:\((?P<arguments>[^)]*)\))?(?P<rest> with(?:out)? time zone)?$")


def parse_type(text: str) -> ColumnType:
    """Return the type that ``format_type`` describes: ``numeric(10,2)``, ``time(3) with time zone``, ``integer[]``."""
    if text.endswith("[]"):
        return ColumnType(Kind.ARRAY, items=parse_type(text[:-2]))
    parts = _TYPE.match(text)
    if parts is None:
        return OTHER
    name = parts["name"].strip()
    arguments = [int(each) for each in (parts["arguments"] or "").split(",") if each.strip().lstrip("-").isdigit()]
    if name == "numeric":
        precision, scale = [*arguments, 0][:2] if arguments else (None, None)
        return ColumnType(Kind.DECIMAL, precision, scale)
    if name in ("timestamp", "time"):
        fraction = arguments[0] if arguments else 6
        zoned = parts["rest"] == " with time zone"
        return ColumnType(Kind.TIMESTAMP if name == "timestamp" else Kind.TIME, fraction=fraction, zoned=zoned)
    if name == "bit" and arguments in ([], [1]):
        return ColumnType(Kind.BOOLEAN, as_text=False, precision=1)
    if name in _TEXTS:
        return TEXT
    return ColumnType(_KINDS[name]) if name in _KINDS else OTHER


def decimal_type(precision: int | None, scale: int) -> str:
    """Return NUMERIC; without a precision it keeps every digit, and a scale alone would be taken for a precision."""
    return "NUMERIC" if precision is None else f"NUMERIC({precision},{scale})"
