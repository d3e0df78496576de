"""Columnar form of Cast's casts between primitive types.

Arrow does the casts in which it is known to agree with Java; the row form's function does the others, value by value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from sluiceway.api.columns import ColumnBatch
from sluiceway.columns.arrow_schema import arrow_type
from sluiceway.columns.constants import nulls
from sluiceway.data import Schema
from sluiceway.transforms.columns.values import by_value

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray
    from sluiceway.transforms.columns.structs import ArrayFunction

    _Cast = Callable[[AnyArray, pa.DataType], AnyArray | None]
    """Casts an array to a type; None where Arrow's cast could differ from Java's."""


_INTEGER_TEXT = r"\A-?[0-9]{1,18}\z"
_NUMBER_TEXT = r"\A-?[0-9]{1,17}(\.[0-9]{1,17})?\z"


def casting(cast: Callable[[Any], Any], source: Schema, target: Schema) -> ArrayFunction:
    """Return the cast of arrays of a schema's values; ``cast`` is the row form of the same cast."""
    type_, one_by_one = arrow_type(target), by_value(cast, source, target)

    def cast_array(values: AnyArray) -> AnyArray:
        if values.null_count == len(values):
            return nulls(target, len(values))
        result = _cast(values, type_)
        return one_by_one(values) if result is None else result

    return cast_array


def casting_whole(cast: Callable[[Any], Any], source: Schema, target: Schema) -> Callable[[AnyArray, ColumnBatch], AnyArray]:
    """Return the cast of whole keys or values."""
    function = casting(cast, source, target)
    return lambda values, _batch: function(values)


def _cast(values: AnyArray, target: pa.DataType) -> AnyArray | None:
    if not pa.types.is_string(target):
        values = _plain(values)
    for is_source, cast in _CASTS:
        if is_source(values.type):
            return cast(values, target)
    return None


def _plain(values: AnyArray) -> AnyArray:
    """Return dates, times and timestamps as the integers of their primitive type, any other values as they are."""
    if pa.types.is_date32(values.type) or pa.types.is_time32(values.type):
        return values.view(pa.int32())
    return values.view(pa.int64()) if pa.types.is_timestamp(values.type) else values


def _from_integers(values: AnyArray, target: pa.DataType) -> AnyArray:
    if pa.types.is_boolean(target):
        return pc.not_equal(values, pa.scalar(0, values.type))
    return values.cast(target, safe=False)  # keeps the low bits


def _from_booleans(values: AnyArray, target: pa.DataType) -> AnyArray:
    return values.cast(target)


def _from_floats(values: AnyArray, target: pa.DataType) -> AnyArray | None:
    if pa.types.is_string(target):
        return None  # Java prints other digits
    if pa.types.is_boolean(target):
        return pc.greater_equal(pc.abs(values), pa.scalar(1.0, values.type))
    if pa.types.is_floating(target):
        return values.cast(target, safe=False)
    wide = pa.int64() if target == pa.int64() else pa.int32()
    limit = pa.scalar(2.0 ** (wide.bit_width - 1), values.type)
    if not pc.all(pc.less(pc.abs(values), limit)).as_py():
        return None  # NaN, or it saturates
    return values.cast(wide, safe=False).cast(target, safe=False)


def _from_texts(values: AnyArray, target: pa.DataType) -> AnyArray | None:
    if pa.types.is_string(target):
        return values
    if pa.types.is_boolean(target):
        return pc.equal(pc.ascii_lower(values), pa.scalar("true"))
    if pa.types.is_floating(target):
        return values.cast(target) if _all_match(values, _NUMBER_TEXT) else None
    if not _all_match(values, _INTEGER_TEXT):
        return None
    numbers = values.cast(pa.int64())
    half = pa.scalar(1 << (target.bit_width - 1), pa.int64()) if target != pa.int64() else None
    if half is not None and not pc.all(pc.and_(pc.less(numbers, half), pc.greater_equal(numbers, pc.negate(half)))).as_py():
        return None  # out of range
    return numbers.cast(target)


def _all_match(values: AnyArray, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(values, pattern)).as_py())


_CASTS: tuple[tuple[Callable[[pa.DataType], bool], _Cast], ...] = (
    (pa.types.is_integer, _from_integers),
    (pa.types.is_boolean, _from_booleans),
    (pa.types.is_floating, _from_floats),
    (pa.types.is_string, _from_texts),
)
