"""Columnar form of ValueToKey."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from sluiceway.api.columns import Column, ColumnBatch, ColumnTransform, NotColumnar, row_form
from sluiceway.data import Schema
from sluiceway.transforms.columns.structs import FieldCopy, copied, struct_array


def keys_of_fields(fields: Sequence[FieldCopy], changed: Schema, replace: bool) -> ColumnTransform:
    """Return the transform that makes keys of a schema of fields copied from the values, which must not be null."""

    def set_keys(batch: ColumnBatch) -> ColumnBatch:
        structs = batch.value.values
        if structs is None or structs.null_count:
            raise NotColumnar("a null value has no fields")
        return dataclasses.replace(batch, key=Column(changed, struct_array(changed, copied(structs, fields, replace), structs)))

    return set_keys


def keys_of_objects(key_of: Callable[[Any], Any]) -> ColumnTransform:
    """Return the transform that makes keys of values without a schema; ``key_of`` returns the key of a value."""

    def set_keys(batch: ColumnBatch) -> ColumnBatch:
        objects = batch.value.objects
        with row_form():
            keys = [key_of(value) for value in ([None] * batch.count if objects is None else objects)]
        return dataclasses.replace(batch, key=Column(None, None, keys))

    return set_keys
