"""Applies functions on arrays to the key or value column of a batch, with each transform's rule for nulls."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from sluiceway.api.columns import Column, ColumnBatch, ColumnTransform, NotColumnar
from sluiceway.api.transform import KeyOrValueTransform
from sluiceway.columns.arrow_schema import nullable
from sluiceway.columns.constants import nulls as nulls_of
from sluiceway.data import Schema

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray
    from sluiceway.transforms.util.columnar import ColumnFunction

_Nulls = tuple[Schema | None, Any]


def column_transform(
    transform: KeyOrValueTransform, schema: Schema, changed: Schema, function: ColumnFunction
) -> ColumnTransform:
    """Return the columnar form for keys or values of ``schema``; ``function`` makes arrays of the ``changed`` schema of them."""
    part, nulls = transform.part, result_for_null(transform, schema)

    def transform_part(batch: ColumnBatch) -> ColumnBatch:
        values = (batch.key if part == "key" else batch.value).values
        assert values is not None  # noqa: S101 (a column with a schema has values)
        if not values.null_count or (nulls is not None and nulls[0] == changed):
            column = Column(changed, _checked(changed, function(values, batch)))
        else:
            column = _all_null(values, nulls)
        return dataclasses.replace(batch, key=column) if part == "key" else dataclasses.replace(batch, value=column)

    return transform_part


def result_for_null(transform: KeyOrValueTransform, schema: Schema | None) -> _Nulls | None:
    """Return the schema and value that a transform returns for null, or None if it raises an error."""
    try:
        return transform.on_null(schema)
    except Exception:  # noqa: BLE001 (the row form raises it for the record)
        return None


def _checked(schema: Schema, values: AnyArray) -> AnyArray:
    if values.null_count and not nullable(schema):
        raise NotColumnar("null without an optional schema")
    return values


def _all_null(values: AnyArray, nulls: _Nulls | None) -> Column:
    if nulls is None or nulls[1] is not None or values.null_count < len(values):
        raise NotColumnar("nulls get another schema than values, or an error")
    schema = nulls[0]
    return Column(schema, None if schema is None else nulls_of(schema, len(values)))
