"""The fields of PostgreSQL's geometric types. No I/O."""

from __future__ import annotations

from typing import Any

from sluiceway.connectors.cdc.columns import FieldType
from sluiceway.connectors.cdc.postgres.text import box_ring, numbers, points, wkb_line, wkb_point, wkb_polygon
from sluiceway.data import Schema, Struct
from sluiceway.data.schema import (
    BYTES_SCHEMA,
    FLOAT64_SCHEMA,
    OPTIONAL_BYTES_SCHEMA,
    OPTIONAL_INT32_SCHEMA,
    STRING_SCHEMA,
)

_GEOMETRY_NAME = "io.debezium.data.geometry."

POINT = Schema.struct(
    [("x", FLOAT64_SCHEMA), ("y", FLOAT64_SCHEMA), ("wkb", OPTIONAL_BYTES_SCHEMA), ("srid", OPTIONAL_INT32_SCHEMA)],
    name=f"{_GEOMETRY_NAME}Point",
    version=1,
    doc="Geometry (POINT)",
)
LINE = Schema.struct(
    [("a", FLOAT64_SCHEMA), ("b", FLOAT64_SCHEMA), ("c", FLOAT64_SCHEMA)],
    name=f"{_GEOMETRY_NAME}Line",
    version=1,
    doc="Geometry (LINE)",
)
CIRCLE = Schema.struct(
    [("center", POINT), ("radius", FLOAT64_SCHEMA)], name=f"{_GEOMETRY_NAME}Circle", version=1, doc="Geometry (CIRCLE)"
)
GEOMETRY = Schema.struct(
    [
        ("wkb", BYTES_SCHEMA),
        ("srid", OPTIONAL_INT32_SCHEMA),
        ("extensions", Schema.map(STRING_SCHEMA, STRING_SCHEMA, optional=True)),
    ],
    name=f"{_GEOMETRY_NAME}Geometry",
    version=2,
    doc="Geometry",
)


def _point(x: float, y: float) -> Struct:
    return Struct.of(POINT, [x, y, wkb_point(x, y), None])


def _geometry(wkb: bytes, kind: str, **more: str) -> Struct:
    return Struct.of(GEOMETRY, [wkb, None, {"type": kind, **more}])


def _ring(text: str) -> list[tuple[float, float]]:
    found = points(text)
    return [*found, found[0]]


def _to_point(text: str) -> Struct:
    return _point(*points(text)[0])


def _to_circle(text: str) -> Struct:
    x, y, radius = numbers(text)
    return Struct.of(CIRCLE, [_point(x, y), radius])


def point(_info: Any, _settings: Any) -> FieldType:
    return FieldType(POINT, _to_point, _point(0.0, 0.0))


def line(_info: Any, _settings: Any) -> FieldType:
    return FieldType(LINE, lambda text: Struct.of(LINE, numbers(text)))


def circle(_info: Any, _settings: Any) -> FieldType:
    return FieldType(CIRCLE, _to_circle)


def lseg(_info: Any, _settings: Any) -> FieldType:
    return FieldType(GEOMETRY, lambda text: _geometry(wkb_line(points(text)), "lseg"))


def box(_info: Any, _settings: Any) -> FieldType:
    return FieldType(GEOMETRY, lambda text: _geometry(wkb_polygon(box_ring(text)), "box"))


def path(_info: Any, _settings: Any) -> FieldType:
    def convert(text: str) -> Struct:
        closed = "true" if text.startswith("(") else "false"
        return _geometry(wkb_line(points(text)), "path", closed=closed)

    return FieldType(GEOMETRY, convert)


def polygon(_info: Any, _settings: Any) -> FieldType:
    return FieldType(GEOMETRY, lambda text: _geometry(wkb_polygon(_ring(text)), "polygon"))
