"""Makes columns of batches of rows. Loads Arrow. No I/O."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute

from sluiceway.api import Column, ColumnBatch, NotColumnar, row_form
from sluiceway.columns.arrays import struct_array, to_array
from sluiceway.columns.arrow_schema import arrow_type, nullable
from sluiceway.columns.refused_values import in_field
from sluiceway.connectors.jdbc.columns import WHOLE_NUMBERS, Kind
from sluiceway.connectors.jdbc.dialects.values import Convert
from sluiceway.connectors.jdbc.dialects.writer import Row
from sluiceway.connectors.jdbc.source.offsets import whole_number
from sluiceway.connectors.jdbc.source.rows import WHOLE
from sluiceway.data import Schema
from sluiceway.data.logical import TIME, TIMESTAMP

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray
    from sluiceway.connectors.jdbc.source.shape import Shape

pc: Any = pyarrow.compute  # its stubs do not know all arguments

_YEARS_BEFORE_1970 = 62_135_596_800_000  # in milliseconds, since the first moment that a datetime can hold


def column_batch(shape: Shape, rows: Sequence[Row]) -> ColumnBatch:
    """Return the keys and values of the records that ``shape.make`` makes of rows.

    Raises NotColumnar if columns cannot hold them, or if a row cannot be converted.
    """
    values = islice(zip(*rows, strict=True), len(shape.columns))
    columns = zip(shape.schema.fields, shape.columns, shape.converters, values, strict=True)
    if shape.number is not None and shape.schema.fields[shape.number].schema.type not in WHOLE:
        with row_form():
            for row in rows:
                whole_number(row[shape.number])
    arrays = [
        in_field(field.name, _array, field.schema, column.type.kind, convert, values)
        for field, column, convert, values in columns
    ]
    key = Column(None, None)
    if shape.key_schema is not None:
        key = Column(shape.key_schema, struct_array(shape.key_schema, [arrays[index] for index in shape.keys]))
    value = Column(shape.schema, struct_array(shape.schema, arrays))
    return ColumnBatch(topic=shape.topic, partition=None, key=key, value=value, count=len(rows))


def converted(kind: Kind, convert: Convert | None, values: Sequence[Any]) -> Sequence[Any]:
    """Return a column's values as ``convert`` makes them of the driver's; unchanged if it would return each as it is."""
    if convert is None or not set(map(type, values)) - {_UNCONVERTED.get(kind), type(None)}:
        return values
    return [None if value is None else convert(value) for value in values]


def _array(schema: Schema, kind: Kind, convert: Convert | None, values: Sequence[Any]) -> AnyArray:
    with row_form():
        values = converted(kind, convert, values)
    special = _WITH_MICROSECONDS.get(schema.name or "")
    if special is None:
        return to_array(schema, values)
    exact, make = special
    if set(map(type, values)) - {exact, type(None)}:
        raise NotColumnar(f"{schema} has values of other types than {exact.__name__}")
    array = make(values)
    if array.null_count and not nullable(schema):
        raise NotColumnar(f"{schema} is required, but has null values")
    return array.cast(arrow_type(schema))


def _times(values: Sequence[Any]) -> AnyArray:
    micros = pa.array(values, pa.time64("us")).view(pa.int64())
    millis: AnyArray = pc.divide(micros, 1000).cast(pa.int32())
    return millis


def _timestamps(values: Sequence[Any]) -> AnyArray:
    micros = pa.array(values, pa.timestamp("us", tz="UTC")).view(pa.int64())
    positive = pc.add(micros, _YEARS_BEFORE_1970 * 1000)  # because division would round towards zero
    millis: AnyArray = pc.subtract(pc.divide(positive, 1000), _YEARS_BEFORE_1970)
    return millis


# Conversions of these kinds return values of the type unchanged, or refuse those that Arrow refuses, too.
_UNCONVERTED: dict[Kind, type] = {
    **dict.fromkeys(WHOLE_NUMBERS, int),
    Kind.FLOAT32: float,
    Kind.FLOAT64: float,
    Kind.STRING: str,
    Kind.BYTES: bytes,
}

# Databases keep microseconds, of which everything that handles records takes the whole milliseconds only, as Java's Date does.
_WITH_MICROSECONDS: dict[str, tuple[type, Callable[[Sequence[Any]], AnyArray]]] = {
    TIME: (dt.time, _times),
    TIMESTAMP: (dt.datetime, _timestamps),
}
