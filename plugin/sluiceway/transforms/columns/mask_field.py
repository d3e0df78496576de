"""Columnar form of MaskField's masks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sluiceway.api.columns import AnyArray, NotColumnar
from sluiceway.columns.arrays import to_values
from sluiceway.data import Schema
from sluiceway.transforms.columns.structs import ArrayFunction, scalar_of


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
        scalar = scalar_of(schema, replacement)
        if not values.null_count:
            return pa.repeat(scalar, len(values))
        return pc.if_else(values.is_valid(), scalar, pa.scalar(None, values.type))

    return masked
