"""Models the columns of tables and queries for all databases, and maps them to Connect schemas. No I/O."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sluiceway.data import Schema, Type, date_schema, decimal_schema, time_schema, timestamp_schema


class Kind(enum.Enum):
    """The kind of a column's values."""

    BOOLEAN = Type.BOOLEAN
    INT8 = Type.INT8
    INT16 = Type.INT16
    INT32 = Type.INT32
    INT64 = Type.INT64
    FLOAT32 = Type.FLOAT32
    FLOAT64 = Type.FLOAT64
    STRING = Type.STRING
    BYTES = Type.BYTES
    ARRAY = Type.ARRAY
    DECIMAL = "decimal"
    DATE = "date"
    TIME = "time"
    TIMESTAMP = "timestamp"


WHOLE_NUMBERS = (Kind.INT8, Kind.INT16, Kind.INT32, Kind.INT64)


@dataclass(frozen=True, slots=True)
class ColumnType:
    """A column's type.

    ``precision`` and ``scale`` are a decimal's, None if unlimited. ``fraction`` is the number of digits of a second.
    ``zoned`` marks dates and times with a time zone. ``as_text`` marks types that are read as the database's own text.
    ``items`` is the type of an array's items.
    """

    kind: Kind
    precision: int | None = None
    scale: int | None = None
    fraction: int = 6
    zoned: bool = False
    as_text: bool = False
    items: ColumnType | None = None


TEXT = ColumnType(Kind.STRING)
OTHER = ColumnType(Kind.STRING, as_text=True)
"""A type without a counterpart in Connect, read as text."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column; ``type_text`` is its type as the database's catalog describes it."""

    name: str
    type: ColumnType
    type_text: str
    nullable: bool = True
    primary_key: bool = False
    auto_increment: bool = False
    has_default: bool = False
    generated: bool = False
    """Whether the database computes it, so that it cannot be written."""


class NumericMapping(enum.Enum):
    """The mapping of decimals to schemas (``numeric.mapping``)."""

    NONE = "none"
    PRECISION_ONLY = "precision_only"
    BEST_FIT = "best_fit"
    BEST_FIT_EAGER_DOUBLE = "best_fit_eager_double"


class Granularity(enum.Enum):
    """The mapping of timestamps to schemas (``timestamp.granularity``)."""

    CONNECT_LOGICAL = "connect_logical"
    MICROS_LONG = "micros_long"
    MICROS_STRING = "micros_string"
    MICROS_ISO = "micros_iso_datetime_string"
    NANOS_LONG = "nanos_long"
    NANOS_STRING = "nanos_string"
    NANOS_ISO = "nanos_iso_datetime_string"


@dataclass(frozen=True, slots=True)
class Mapping:
    """The mapping of columns to fields."""

    numeric: NumericMapping = NumericMapping.NONE
    granularity: Granularity = Granularity.CONNECT_LOGICAL


DEFAULT_MAPPING = Mapping()

_LONGEST_LONG = 18  # digits that fit into any 64-bit integer
_LOGICAL: dict[Kind, Callable[..., Schema]] = {Kind.DATE: date_schema, Kind.TIME: time_schema, Kind.TIMESTAMP: timestamp_schema}


def mapped(column_type: ColumnType, mapping: Mapping = DEFAULT_MAPPING) -> Kind:
    """Return the kind of a field's values for a column type."""
    if column_type.kind is Kind.DECIMAL:
        return _mapped_decimal(column_type.precision, column_type.scale, mapping.numeric)
    if column_type.kind is Kind.TIMESTAMP and mapping.granularity is not Granularity.CONNECT_LOGICAL:
        return Kind.INT64 if mapping.granularity.value.endswith("_long") else Kind.STRING
    return column_type.kind


def _mapped_decimal(precision: int | None, scale: int | None, mapping: NumericMapping) -> Kind:
    best_fit = mapping in (NumericMapping.BEST_FIT, NumericMapping.BEST_FIT_EAGER_DOUBLE)
    if precision is None or scale is None:  # unlimited digits on both sides of the point fit only into a string
        return Kind.FLOAT64 if best_fit else Kind.STRING
    whole = scale < 1 if best_fit else scale == 0
    if mapping is not NumericMapping.NONE and whole and precision - min(scale, 0) <= _LONGEST_LONG:
        return _integer(precision - min(scale, 0))
    if scale > 0 and (
        mapping is NumericMapping.BEST_FIT_EAGER_DOUBLE or (mapping is NumericMapping.BEST_FIT and precision <= _LONGEST_LONG)
    ):
        return Kind.FLOAT64
    return Kind.DECIMAL


def _integer(digits: int) -> Kind:
    if digits > 9:
        return Kind.INT64
    if digits > 4:
        return Kind.INT32
    return Kind.INT16 if digits > 2 else Kind.INT8


def field_schema(column_type: ColumnType, *, optional: bool, mapping: Mapping = DEFAULT_MAPPING) -> Schema:
    """Return the schema of a column's field."""
    kind = mapped(column_type, mapping)
    if kind is Kind.DECIMAL:
        return decimal_schema(column_type.scale or 0, optional=optional)
    if kind in _LOGICAL:
        return _LOGICAL[kind](optional=optional)
    if kind is Kind.ARRAY:
        assert column_type.items is not None  # noqa: S101 (parsed so)
        return Schema.array(field_schema(column_type.items, optional=True, mapping=mapping), optional=optional)
    assert isinstance(kind.value, Type)  # noqa: S101 (the other kinds are handled above)
    return Schema(kind.value, optional=optional)


def row_schema(name: str | None, columns: Iterable[Column], mapping: Mapping = DEFAULT_MAPPING) -> Schema:
    """Return the struct schema of the rows of a table or query. Raises SchemaBuilderError for two columns of one name."""
    fields = [(column.name, field_schema(column.type, optional=column.nullable, mapping=mapping)) for column in columns]
    return Schema.struct(fields, name=name)
