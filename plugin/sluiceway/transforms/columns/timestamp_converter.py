"""Columnar form of TimestampConverter's conversions, by way of milliseconds since the epoch.

Text is read and written by the row form's function, value by value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from sluiceway.api.columns import ColumnBatch
from sluiceway.columns.arrow_schema import arrow_type
from sluiceway.columns.refused_values import refused_values
from sluiceway.data import Schema
from sluiceway.java.dates.hybrid_calendar import DAY_MS
from sluiceway.transforms.columns.integers import floor_divide, number
from sluiceway.transforms.columns.values import by_value

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray
    from sluiceway.transforms.columns.structs import ArrayFunction

_PER_MILLI = {"nanoseconds": 1_000_000, "microseconds": 1_000}


def converting(convert: Callable[[Any], Any], precision: str, source: Schema, target: Schema) -> ArrayFunction:
    """Return the conversion of arrays of a schema's values; ``convert`` is the row form of the same conversion."""
    type_, one_by_one = arrow_type(target), by_value(convert, source, target)
    if pa.types.is_string(type_) or pa.types.is_string(arrow_type(source)):
        return one_by_one

    def convert_array(values: AnyArray) -> AnyArray:
        return _written(_read(values, precision), type_, precision)

    return convert_array


def converting_whole(
    convert: Callable[[Any], Any], precision: str, source: Schema, target: Schema
) -> Callable[[AnyArray, ColumnBatch], AnyArray]:
    """Return the conversion of whole keys or values."""
    function = converting(convert, precision, source, target)
    return lambda values, _batch: function(values)


def _read(values: AnyArray, precision: str) -> AnyArray:
    """Return the milliseconds since the epoch."""
    if pa.types.is_date32(values.type):
        return pc.multiply(values.view(pa.int32()).cast(pa.int64()), number(DAY_MS))
    if pa.types.is_time32(values.type):
        return values.view(pa.int32()).cast(pa.int64())
    if pa.types.is_timestamp(values.type):
        return values.view(pa.int64())
    if precision == "seconds":
        return _multiplied(values, 1000)
    return pc.divide(values, number(_PER_MILLI[precision])) if precision in _PER_MILLI else values


def _written(millis: AnyArray, type_: pa.DataType, precision: str) -> AnyArray:
    if pa.types.is_timestamp(type_):
        return millis.view(type_)
    if pa.types.is_date32(type_):
        return floor_divide(millis, DAY_MS).cast(pa.int32()).view(type_)
    if pa.types.is_time32(type_):
        midnight = pc.multiply(floor_divide(millis, DAY_MS), number(DAY_MS))
        return pc.subtract(millis, midnight).cast(pa.int32()).view(type_)
    if precision == "seconds":
        return pc.divide(millis, number(1000))  # rounds toward zero, as Java does
    return _multiplied(millis, _PER_MILLI[precision]) if precision in _PER_MILLI else millis


def _multiplied(numbers: AnyArray, factor: int) -> AnyArray:
    with refused_values("moments where the row form saturates"):
        return pc.multiply_checked(numbers, number(factor))
