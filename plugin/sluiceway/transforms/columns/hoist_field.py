"""Columnar form of HoistField."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from sluiceway.api.columns import ColumnBatch, NotColumnar
from sluiceway.columns.arrow_schema import arrow_type
from sluiceway.data import Schema, Type
from sluiceway.transforms.columns.structs import children_of

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray
    from sluiceway.transforms.util.columnar import ColumnFunction


def hoisting(schema: Schema, hoisted: Schema) -> ColumnFunction:
    """Return the function that wraps values, nulls included, in structs with one field."""

    def hoist(values: AnyArray, _batch: ColumnBatch) -> AnyArray:
        if _lacks_value(schema, values):
            raise NotColumnar("null where a value is required")
        return pa.Array.from_buffers(arrow_type(hoisted), len(values), [None], 0, children=[values])

    return hoist


def _lacks_value(schema: Schema, values: AnyArray) -> bool:
    """Return True if a value, or one inside it, is null where neither its schema nor a default allows that."""
    if values.null_count and not schema.optional:
        return True
    return _lacks_inner_value(schema, values)


def _lacks_inner_value(schema: Schema, values: AnyArray) -> bool:
    if schema.type is Type.STRUCT:
        present = values.drop_null()
        return any(
            _lacks_inner_value(field.schema, child) if field.schema.default is not None else _lacks_value(field.schema, child)
            for field, child in zip(schema.fields, children_of(present), strict=True)
        )
    if isinstance(values, pa.ListArray) and schema.value_schema is not None:
        return _lacks_value(schema.value_schema, values.flatten())
    if isinstance(values, pa.MapArray) and schema.value_schema is not None and schema.key_schema is not None:
        return _lacks_value(schema.value_schema, values.items) or _lacks_inner_value(schema.key_schema, values.keys)
    return False
