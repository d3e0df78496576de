"""Converts geometries, which the servers store as an SRID before the well-known binary form. No I/O."""

from __future__ import annotations

import struct

from sluiceway.data import Schema, Struct
from sluiceway.data.schema import BYTES_SCHEMA, FLOAT64_SCHEMA, OPTIONAL_BYTES_SCHEMA, OPTIONAL_INT32_SCHEMA

_NAMES = "io.debezium.data.geometry."
_POINT_BYTES = struct.Struct("<xxxxxdd")  # byte order and type, then x and y

POINT = Schema.struct(
    [("x", FLOAT64_SCHEMA), ("y", FLOAT64_SCHEMA), ("wkb", OPTIONAL_BYTES_SCHEMA), ("srid", OPTIONAL_INT32_SCHEMA)],
    name=f"{_NAMES}Point",
    version=1,
    doc="Geometry (POINT)",
)
GEOMETRY = Schema.struct(
    [("wkb", BYTES_SCHEMA), ("srid", OPTIONAL_INT32_SCHEMA)], name=f"{_NAMES}Geometry", version=1, doc="Geometry"
)

EMPTY = bytes.fromhex("00000000010700000000000000")  # an empty collection, with SRID 0


def point(data: bytes, schema: Schema = POINT) -> Struct:
    """Return a point."""
    x, y = _POINT_BYTES.unpack_from(data, 4)
    return Struct.of(schema, [x, y, data[4:], _srid(data)])


def geometry(data: bytes, schema: Schema = GEOMETRY) -> Struct:
    """Return a geometry of another kind."""
    return Struct.of(schema, [data[4:], _srid(data)])


def _srid(data: bytes) -> int | None:
    return int.from_bytes(data[:4], "little", signed=True) or None
