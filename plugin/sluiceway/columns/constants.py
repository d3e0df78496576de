"""Makes arrays that repeat one value. Typed wrappers of PyArrow's functions, whose stubs know no type given at run time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from sluiceway.columns.arrays import to_array
from sluiceway.columns.arrow_schema import arrow_type

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray
    from sluiceway.data import Schema


def nulls(schema: Schema, count: int) -> AnyArray:
    """Return ``count`` nulls as an array of a schema's values. Raises NotColumnar for a schema that has no Arrow type."""
    type_: Any = arrow_type(schema)
    return cast("AnyArray", pa.nulls(count, type_))


def repeated(schema: Schema, value: Any, count: int) -> AnyArray:
    """Return an array with ``count`` times the same value of a schema. Raises NotColumnar."""
    return cast("AnyArray", pa.repeat(scalar_of(schema, value), count))


def with_default(values: AnyArray, schema: Schema, default: Any) -> AnyArray:
    """Return an array of a schema's values with a default in place of nulls. Raises NotColumnar."""
    return pc.coalesce(values, scalar_of(schema, default))


def null_where(values: AnyArray, missing: pa.BooleanArray) -> AnyArray:
    """Return an array with nulls in addition where ``missing`` is True."""
    null: Any = pa.scalar(None, values.type)
    return cast("AnyArray", pc.if_else(missing, null, values))


def scalar_of(schema: Schema, value: Any) -> Any:
    """Return a value of a schema as an Arrow scalar. Raises NotColumnar."""
    return to_array(schema, [value])[0]
