"""Gives values to the required fields of null structs, for writers that refuse nulls there, such as Parquet's."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray

new_map: Any = pa.MapArray.from_arrays  # its type hints are those of simple items only


def without_hidden_nulls(array: AnyArray) -> AnyArray:
    """Return an equal array in which required fields of nested structs are null nowhere, also where the struct is null."""
    if isinstance(array, pa.StructArray):
        fields = list(array.type)
        if not fields:
            return array
        children = [_required(array.field(number), field) for number, field in enumerate(fields)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null() if array.null_count else None)
    if isinstance(array, pa.MapArray) and pa.types.is_nested(array.type.item_type):
        whole = compact(array)
        items = without_hidden_nulls(whole.items)
        found: AnyArray = new_map(
            whole.offsets, whole.keys, items, type=array.type, mask=array.is_null() if array.null_count else None
        )
        return found
    if isinstance(array, pa.ListArray) and pa.types.is_list(array.type) and pa.types.is_nested(array.type.value_type):
        whole = compact(array)
        return pa.ListArray.from_arrays(
            whole.offsets, without_hidden_nulls(whole.values), type=array.type, mask=array.is_null() if array.null_count else None
        )
    return array


def compact(array: AnyArray) -> Any:
    """Return a copy of a slice, whose offsets Arrow does not take together with a mask."""
    return pa.concat_arrays([array, array.slice(0, 0)]) if array.offset else array


def _required(array: AnyArray, field: pa.Field[Any]) -> AnyArray:
    if array.null_count and not field.nullable:
        values = pa.concat_arrays([array, pa.array([_any_value(field.type)], field.type)])
        indices = pc.if_else(array.is_valid(), pa.array(range(len(array)), pa.int64()), pa.scalar(len(array), pa.int64()))
        array = values.take(indices)
    return without_hidden_nulls(array)


def _any_value(type_: pa.DataType) -> Any:
    """Return a value of a type for places that no reader sees."""
    if isinstance(type_, pa.StructType):
        return {field.name: _any_value(field.type) for field in type_}
    if isinstance(type_, pa.MapType) or pa.types.is_list(type_):
        return []
    if pa.types.is_string(type_):
        return ""
    if pa.types.is_binary(type_):
        return b""
    if pa.types.is_boolean(type_):
        return False
    if pa.types.is_decimal(type_):
        return Decimal(0)
    return 0
