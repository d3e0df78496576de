"""Applies the row form's function to each value of an array: for conversions that Arrow does not have."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sluiceway.api.columns import NotColumnar
from sluiceway.columns.arrays import to_array, to_values
from sluiceway.data import Schema

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray
    from sluiceway.transforms.columns.structs import ArrayFunction


def by_value(function: Callable[[Any], Any], source: Schema, target: Schema) -> ArrayFunction:
    """Return the function on arrays that applies a function to each value that is not null.

    It raises NotColumnar for a value that the function refuses: the row form raises the error for its record.
    """

    def apply(values: AnyArray) -> AnyArray:
        try:
            results = [None if value is None else function(value) for value in to_values(source, values)]
        except Exception as error:  # whatever it is, the row form raises it
            raise NotColumnar(str(error)) from error
        return to_array(target, results)

    return apply
