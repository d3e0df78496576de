"""Columnar form of MaskField's masks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sluiceway.api.columns import NotColumnar
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
        sample = values.drop_null()[:1]
        try:
            replacement = mask(to_values(schema, sample)[0])
        except Exception as error:  # whatever it is, the row form raises it
            raise NotColumnar(str(error)) from error
        masks = repeated(schema, replacement, len(values))
        return null_where(masks, values.is_null()) if values.null_count else masks

    return masked
