"""Arithmetic on arrays of int64 that PyArrow does not have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray


def number(value: int) -> pa.Int64Scalar:
    """Return an int64."""
    return pa.scalar(value, pa.int64())


def floor_divide(values: AnyArray, divisor: int) -> AnyArray:
    """Return quotients that are rounded down; Arrow rounds toward zero. ``divisor`` is positive."""
    quotients = pc.divide(values, number(divisor))
    below = pc.less(values, pc.multiply(quotients, number(divisor)))
    return pc.subtract(quotients, below.cast(pa.int64()))
