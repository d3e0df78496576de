"""Columnar form of MaskField's masks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sluiceway.api.columns import row_form
from sluiceway.columns.arrays import to_values
from sluiceway.columns.constants import null_where, repeated
from sluiceway.data import Schema

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray
    from sluiceway.transforms.columns.structs import ArrayFunction


def masking(mask: Callable[[Any], Any], schema: Schema) -> ArrayFunction:
    """Return the function that masks an array. ``mask`` is the row form, whose result depends only on the value's class."""

    def masked(values: AnyArray) -> AnyArray:
        if values.null_count == len(values):
            return values
        sample = to_values(schema, values.drop_null()[:1])[0]
        with row_form():
            masked_sample = mask(sample)
        masks = repeated(schema, masked_sample, len(values))
        return null_where(masks, values.is_null()) if values.null_count else masks

    return masked
