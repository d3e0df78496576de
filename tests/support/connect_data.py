"""Random schemas with values that fit them, for property tests."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from sluiceway.data import Schema, Struct, Type
from sluiceway.data.logical import DATE, DECIMAL, TIME, TIMESTAMP
from sluiceway.java.numbers import to_float32

_BITS = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}
_SCALES = range(-3, 30)

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)
texts = st.text(st.characters(exclude_categories=["Cs"]))
# Connect reads -0.0 as 0.0, and NaN and the infinities as 0.0.
floats = st.floats(allow_nan=False, allow_infinity=False).map(lambda number: number + 0.0)
floats32 = st.floats(width=32, allow_nan=False, allow_infinity=False).map(lambda number: to_float32(number) + 0.0)


def _attributes(draw: Any) -> dict[str, Any]:
    return {
        "optional": draw(st.booleans()),
        "version": draw(st.none() | st.integers(1, 9)),
        "doc": draw(st.none() | st.just("what it is")),
        "parameters": draw(st.none() | st.just({"p": "q", "payload": "x"})),
    }


@st.composite
def schemas(draw: Any, depth: int = 3) -> Schema:
    """A schema of any type, at most ``depth`` levels of arrays, maps and structs; some have a default."""
    kinds = [*_BITS, Type.FLOAT32, Type.FLOAT64, Type.BOOLEAN, Type.STRING, Type.BYTES, DECIMAL, DATE, TIME, TIMESTAMP]
    kind = draw(st.sampled_from([*kinds, *([Type.ARRAY, Type.MAP, Type.STRUCT] * 2 if depth else [])]))
    given = _attributes(draw)
    if kind is Type.ARRAY:
        return Schema.array(draw(schemas(depth - 1)), **given)
    if kind is Type.MAP:
        keys = draw(st.sampled_from([Schema(Type.STRING), Schema(Type.INT32), Schema(Type.BOOLEAN)]))
        return Schema.map(keys, draw(schemas(depth - 1)), **given)
    if kind is Type.STRUCT:
        fields = draw(st.lists(st.tuples(names, schemas(depth - 1)), max_size=4, unique_by=lambda field: field[0]))
        return Schema.struct(fields, name=draw(st.none() | st.just("com.x.Record")), **given)
    schema = _logical(draw, kind, given) if isinstance(kind, str) else Schema(kind, **given)
    if draw(st.integers(0, 4)) == 0:
        return schema.replace(default=draw(_value(schema)))
    return schema


def _logical(draw: Any, name: str, given: dict[str, Any]) -> Schema:
    type_ = {DECIMAL: Type.BYTES, TIMESTAMP: Type.INT64}.get(name, Type.INT32)
    parameters = {"scale": str(draw(st.sampled_from(_SCALES)))} if name == DECIMAL else None
    return Schema(type_, **{**given, "name": name, "parameters": parameters})


@st.composite
def values(draw: Any, schema: Schema) -> Any:
    """A value that fits a schema, null where that is allowed."""
    if schema.optional and schema.default is None and draw(st.integers(0, 4)) == 0:
        return None
    return draw(_value(schema))


def _value(schema: Schema) -> st.SearchStrategy[Any]:
    if schema.name in _LOGICAL:
        return _LOGICAL[schema.name](schema)
    if schema.type in _BITS:
        half = 1 << (_BITS[schema.type] - 1)
        return st.integers(-half, half - 1)
    if schema.type is Type.ARRAY:
        assert schema.value_schema is not None
        return st.lists(values(schema.value_schema), max_size=3)
    if schema.type is Type.MAP:
        assert schema.key_schema is not None
        assert schema.value_schema is not None
        return st.dictionaries(values(schema.key_schema), values(schema.value_schema), max_size=3)
    if schema.type is Type.STRUCT:
        filled = st.tuples(*(values(field.schema) for field in schema.fields))
        return filled.map(lambda given: Struct.of(schema, list(given)))
    return _SCALARS[schema.type]


def _decimals(schema: Schema) -> st.SearchStrategy[Decimal]:
    scale = int(schema.parameters["scale"])
    # Connect's decimals have no negative zero.
    return st.integers(-(10**30), 10**30).map(
        lambda number: Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -scale))
    )


def _to_the_millisecond(moment: Any) -> Any:
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000, fold=0)


_SCALARS = {
    Type.FLOAT32: floats32,
    Type.FLOAT64: floats,
    Type.BOOLEAN: st.booleans(),
    Type.STRING: texts,
    Type.BYTES: st.binary(),
}
_LOGICAL: dict[str, Callable[[Schema], st.SearchStrategy[Any]]] = {
    DECIMAL: _decimals,
    DATE: lambda _: st.dates(),
    TIME: lambda _: st.times().map(_to_the_millisecond),
    TIMESTAMP: lambda _: st.datetimes(timezones=st.just(dt.timezone.utc)).map(_to_the_millisecond),
}
