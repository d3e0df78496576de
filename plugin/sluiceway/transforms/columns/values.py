"""Applies the row form's function to each value of an array: for conversions that Arrow does not have."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sluiceway.api.columns import row_form
from sluiceway.columns.arrays import to_array, to_values
from sluiceway.data import Schema

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray
    from sluiceway.transforms.columns.structs import ArrayFunction


def by_value(function: Callable[[Any], Any], source: Schema, target: Schema) -> ArrayFunction:
    """Return the function on arrays that applies a function to each value that is not null. Raises NotColumnar."""

    def apply(values: AnyArray) -> AnyArray:
        with row_form():
            applied = [None if value is None else function(value) for value in to_values(source, values)]
        return to_array(target, applied)

    return apply
