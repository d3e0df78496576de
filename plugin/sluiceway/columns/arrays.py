"""Converts values of a Connect schema to Arrow arrays and back, without loss: what an array cannot hold raises NotColumnar."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Sequence, Sized
from decimal import Decimal
from itertools import accumulate, chain, pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute

from sluiceway.api.columns import NotColumnar
from sluiceway.columns.arrow_schema import arrow_fields, arrow_type, logical, nullable
from sluiceway.columns.refused_values import VALUE_ERRORS, in_field
from sluiceway.data import Schema, Struct, Type
from sluiceway.data.instant import EPOCH, date_of, time_of, timestamp_of
from sluiceway.data.logical import DATE, DECIMAL, TIME, TIMESTAMP, decimal_of, decimal_scale
from sluiceway.java.dates.hybrid_calendar import DAY_MS

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray

pc: Any = pyarrow.compute  # its stubs do not know all arguments

_NULL = type(None)
_EXACT: dict[Type, type] = {
    Type.INT8: int,
    Type.INT16: int,
    Type.INT32: int,
    Type.INT64: int,
    Type.FLOAT32: float,
    Type.FLOAT64: float,
    Type.BOOLEAN: bool,
    Type.STRING: str,
    Type.BYTES: bytes,
    Type.ARRAY: list,
    Type.MAP: dict,
    Type.STRUCT: Struct,
}
_EXACT_LOGICAL: dict[str, type] = {DECIMAL: Decimal, DATE: dt.date, TIME: dt.time, TIMESTAMP: dt.datetime}


def to_array(schema: Schema, values: Sequence[Any]) -> AnyArray:
    """Return values of a schema as an array of ``arrow_type(schema)``. Nulls stay null: the reader applies the default.

    Raises NotColumnar if ``to_values`` would not return equal values of the same types: for values of other Python types than
    converters create, for ``Instant``, for decimals with another scale, and for null where the schema requires a value.
    """
    arrow_type(schema)  # raises for schemas that have no Arrow type
    try:
        return _array(schema, values, 0)
    except (*VALUE_ERRORS, OverflowError, UnicodeError) as error:  # integers of more than 64 bits, unpaired surrogates
        raise NotColumnar(f"Values of {schema} do not fit an Arrow array: {error}") from error


def to_values(schema: Schema, array: AnyArray) -> list[Any]:
    """Return the Connect values in an array of ``arrow_type(schema)``. Nulls are None, also for fields with a default."""
    name = logical(schema)
    if name is not None:
        return _LOGICAL_VALUES[name](array)
    if schema.type is Type.STRUCT:
        return _struct_values(schema, array)
    if schema.type is Type.ARRAY:
        return _list_values(schema, array)
    if schema.type is Type.MAP:
        return _map_values(schema, array)
    return array.to_pylist()


# --- to arrays ---


def _array(schema: Schema, values: Sequence[Any], outer_nulls: int) -> AnyArray:
    """Return the array of values, of which ``outer_nulls`` are null because the struct that contains them is."""
    name = logical(schema)
    exact = _EXACT[schema.type] if name is None else _EXACT_LOGICAL[name]
    found = set(map(type, values))
    if found - {exact, _NULL}:
        raise NotColumnar(f"{schema} has values of {', '.join(sorted(kind.__qualname__ for kind in found - {exact, _NULL}))}")
    array = _leaf(schema, name, values) if name is not None or schema.type.primitive else _NESTED[schema.type](schema, values)
    if array.null_count != outer_nulls and not nullable(schema):
        raise NotColumnar(f"{schema} is required, but has null values")
    return array


def _leaf(schema: Schema, name: str | None, values: Sequence[Any]) -> AnyArray:
    array: object
    if name is not None:
        array = _TO_LOGICAL_ARRAY[name](schema, values)
    elif schema.type is Type.FLOAT32:
        array = _float32(values)
    else:
        array = pa.array(values, arrow_type(schema))
    if not isinstance(array, pa.Array):  # a ChunkedArray, for text or bytes of more than 2 GB
        raise NotColumnar(f"Values of {schema} are too large for one Arrow array")
    return array


def _float32(values: Sequence[Any]) -> AnyArray:
    """Return 32-bit floats. A value with more digits than 32 bits hold is not columnar, because its text is different."""
    doubles = pa.array(values, pa.float64())
    array = doubles.cast(pa.float32(), safe=False)
    same = pc.or_(pc.equal(array.cast(pa.float64()), doubles), pc.is_nan(doubles))
    if pc.all(same).as_py() is False:
        raise NotColumnar("FLOAT32 values with more than 32 bits")
    return array


def _decimals(schema: Schema, values: Sequence[Any]) -> AnyArray:
    same_scale = decimal_of(1, decimal_scale(schema)).same_quantum
    present: Sequence[Decimal] = [value for value in values if value is not None]
    if not all(map(same_scale, present)):
        raise NotColumnar(f"{schema} has values with another scale")
    if any(not value and value.is_signed() for value in present):
        raise NotColumnar("Arrow has no negative zero decimal")
    return pa.array(values, arrow_type(schema))


def _times(schema: Schema, values: Sequence[Any]) -> AnyArray:
    _check_zone(values, None)
    return pa.array(values, pa.time64("us")).cast(arrow_type(schema))  # raises for parts of milliseconds


def _timestamps(schema: Schema, values: Sequence[Any]) -> AnyArray:
    _check_zone(values, dt.timezone.utc)
    # Arrow would ask each datetime for its zone's offset, which takes four times as long.
    since: Any = pa.array([None if value is None else value - EPOCH for value in values], pa.duration("us"))
    array: AnyArray = since.view(pa.timestamp("us", tz="UTC")).cast(arrow_type(schema))  # raises for parts of milliseconds
    return array


def _check_zone(values: Sequence[Any], zone: dt.tzinfo | None) -> None:
    """Raise NotColumnar for a time in another zone, because ``to_values`` would return it in this one."""
    if any(value is not None and value.tzinfo is not zone for value in values):
        raise NotColumnar(f"Times in another time zone than {zone}")


_TO_LOGICAL_ARRAY: dict[str, Callable[[Schema, Sequence[Any]], AnyArray]] = {
    DECIMAL: _decimals,
    DATE: lambda schema, values: pa.array(values, arrow_type(schema)),
    TIME: _times,
    TIMESTAMP: _timestamps,
}


def _structs(schema: Schema, values: Sequence[Any]) -> AnyArray:
    fields = schema.fields
    if not fields:
        return pa.array([None if value is None else {} for value in values], arrow_type(schema))
    nothing = [None] * len(fields)
    rows, nulls = [], []
    for value in values:
        if value is None:
            rows.append(nothing)
        elif value.schema is schema or value.schema == schema:
            rows.append(value.values_)
        else:
            raise NotColumnar(f"A struct of {value.schema} in {schema}")
        nulls.append(value is None)
    try:
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(fields)
    except ValueError as error:
        raise NotColumnar(f"Structs of {schema} with different numbers of values") from error
    if len(columns) != len(fields):
        raise NotColumnar(f"Structs of {schema} with {len(columns)} values instead of {len(fields)}")
    count = sum(nulls)
    arrays = [in_field(field.name, _array, field.schema, column, count) for field, column in zip(fields, columns, strict=True)]
    return struct_array(schema, arrays, pa.array(nulls, pa.bool_()) if count else None)


def _lists(schema: Schema, values: Sequence[Any]) -> AnyArray:
    assert schema.value_schema is not None  # noqa: S101 (an array schema has one)
    items = _array(schema.value_schema, flat(values), 0)
    return list_array(schema, offsets(values), items, null_mask(values))


def _maps(schema: Schema, values: Sequence[Any]) -> AnyArray:
    assert schema.key_schema is not None  # noqa: S101 (a map schema has both)
    assert schema.value_schema is not None  # noqa: S101
    keys = _array(schema.key_schema, flat(values), 0)
    if keys.null_count:
        raise NotColumnar("Arrow maps have no null keys")
    items = _array(schema.value_schema, flat([value and value.values() for value in values]), 0)
    return map_array(schema, offsets(values), keys, items, null_mask(values))


_NESTED: dict[Type, Callable[[Schema, Sequence[Any]], AnyArray]] = {
    Type.STRUCT: _structs,
    Type.ARRAY: _lists,
    Type.MAP: _maps,
}


# --- parts of nested arrays ---


def struct_array(schema: Schema, arrays: Sequence[AnyArray], nulls: pa.BooleanArray | None = None) -> pa.StructArray:
    """Return the array of a struct schema with at least one field; ``nulls`` is true for null structs."""
    return pa.StructArray.from_arrays(arrays, fields=arrow_fields(schema), mask=nulls)


def list_array(schema: Schema, starts: pa.Int32Array, items: AnyArray, nulls: pa.BooleanArray | None) -> AnyArray:
    """Return the array of an array schema."""
    return pa.ListArray.from_arrays(starts, items, type=arrow_type(schema), mask=nulls)


def map_array(schema: Schema, starts: pa.Int32Array, keys: AnyArray, items: AnyArray, nulls: pa.BooleanArray | None) -> AnyArray:
    """Return the array of a map schema."""
    make: Any = pa.MapArray.from_arrays  # the stubs do not know all arguments
    array: AnyArray = make(starts, keys, items, arrow_type(schema), mask=nulls)
    return array


def flat(values: Iterable[Iterable[Any] | None]) -> list[Any]:
    """Return the elements of all collections."""
    return list(chain.from_iterable(value or () for value in values))


def offsets(values: Iterable[Sized | None]) -> pa.Int32Array:
    """Return where each collection starts among the elements of all, and where the last one ends."""
    return pa.array(accumulate((len(value or ()) for value in values), initial=0), pa.int32())


def null_mask(values: Sequence[Any]) -> pa.BooleanArray | None:
    """Return an array that is true for null values, None if there are none."""
    return pa.array([value is None for value in values], pa.bool_()) if None in values else None


# --- to values ---


def _struct_values(schema: Schema, array: AnyArray) -> list[Any]:
    assert isinstance(array, pa.StructArray)  # noqa: S101 (the type of a struct schema)
    if not schema.fields:
        structs: list[Any] = [Struct.of(schema, []) for _ in range(len(array))]
    else:
        columns = [to_values(field.schema, array.field(field.index)) for field in schema.fields]
        structs = _structs_of(schema, columns)
    return _with_nulls(array, structs)


def _structs_of(schema: Schema, columns: list[list[Any]]) -> list[Any]:
    new = Struct.__new__
    structs = []
    for values in zip(*columns, strict=True):
        struct = new(Struct)  # Struct.of inlined
        struct.schema = schema
        struct.values_ = list(values)
        structs.append(struct)
    return structs


def _list_values(schema: Schema, array: AnyArray) -> list[Any]:
    assert isinstance(array, pa.ListArray)  # noqa: S101 (the type of an array schema)
    assert schema.value_schema is not None  # noqa: S101
    items = to_values(schema.value_schema, array.values)
    bounds = array.offsets.to_pylist()
    return _with_nulls(array, [items[start:end] for start, end in pairwise(bounds)])


def _map_values(schema: Schema, array: AnyArray) -> list[Any]:
    assert isinstance(array, pa.MapArray)  # noqa: S101 (the type of a map schema)
    assert schema.key_schema is not None  # noqa: S101
    assert schema.value_schema is not None  # noqa: S101
    keys, items = to_values(schema.key_schema, array.keys), to_values(schema.value_schema, array.items)
    bounds = array.offsets.to_pylist()
    maps = [dict(zip(keys[start:end], items[start:end], strict=True)) for start, end in pairwise(bounds)]
    return _with_nulls(array, maps)


def _with_nulls(array: AnyArray, values: list[Any]) -> list[Any]:
    if array.null_count:
        return [value if valid else None for value, valid in zip(values, array.is_valid().to_pylist(), strict=True)]
    return values


def _date_values(array: AnyArray) -> list[Any]:
    return [None if days is None else date_of(days * DAY_MS) for days in array.view(pa.int32()).to_pylist()]


def _time_values(array: AnyArray) -> list[Any]:
    return [None if millis is None else time_of(millis) for millis in array.view(pa.int32()).to_pylist()]


def _timestamp_values(array: AnyArray) -> list[Any]:
    return [None if millis is None else timestamp_of(millis) for millis in array.view(pa.int64()).to_pylist()]


_LOGICAL_VALUES: dict[str, Callable[[AnyArray], list[Any]]] = {
    DECIMAL: lambda array: array.to_pylist(),
    DATE: _date_values,
    TIME: _time_values,
    TIMESTAMP: _timestamp_values,
}
