"""Puts the defaults of a schema in place of nulls, as the row form reads them."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sluiceway.columns.constants import with_default
from sluiceway.columns.required import compact, new_map
from sluiceway.data import Schema

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray


def with_defaults(schema: Schema, array: AnyArray) -> AnyArray:
    """Return an array of a schema's values with defaults for nulls, also within structs, lists and maps. Raises NotColumnar."""
    if not _has_default(schema):
        return array
    if schema.default is not None and array.null_count:
        array = with_default(array, schema, schema.default)
    nulls = array.is_null() if array.null_count else None
    if isinstance(array, pa.StructArray):
        fields = [with_defaults(field.schema, array.field(field.index)) for field in schema.fields]
        return pa.StructArray.from_arrays(fields, fields=list(array.type), mask=nulls)
    if isinstance(array, pa.MapArray):
        whole = compact(array)
        entries: AnyArray = new_map(
            whole.offsets, whole.keys, with_defaults(_part(schema.value_schema), whole.items), type=array.type, mask=nulls
        )
        return entries
    if isinstance(array, pa.ListArray):
        whole = compact(array)
        items = with_defaults(_part(schema.value_schema), whole.values)
        return pa.ListArray.from_arrays(whole.offsets, items, type=array.type, mask=nulls)
    return array


@functools.lru_cache(maxsize=4096)
def _has_default(schema: Schema) -> bool:
    """Return whether a part of a schema has a default."""
    parts: list[Any] = [field.schema for field in schema.fields]
    parts += [part for part in (schema.key_schema, schema.value_schema) if part is not None]
    return schema.default is not None or any(map(_has_default, parts))


def _part(schema: Schema | None) -> Schema:
    assert schema is not None  # noqa: S101 (an array or a map that has an Arrow type has it)
    return schema
