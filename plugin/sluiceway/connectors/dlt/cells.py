"""Columns as dlt has them: the widest type of a kind, and JSON for nested values. Loads Arrow."""

from __future__ import annotations

import base64
import datetime as dt
import json
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import orjson
import pyarrow as pa

JSON = {"json": "true"}
"""Metadata of a column of dlt's type json, which Arrow has as text."""


def is_json(field: pa.Field[Any]) -> bool:
    return b"json" in (field.metadata or {})


def column_type(type_: pa.DataType) -> pa.DataType | None:
    """Return the type of a column for data of a type; None if dlt has none.

    It is the widest of its kind, because dlt never changes the type of a column.
    """
    if isinstance(type_, pa.TimestampType):
        return pa.timestamp("us", type_.tz)
    if isinstance(type_, pa.DictionaryType):
        return column_type(type_.value_type)
    return next((column or type_ for is_of_kind, column in _KINDS if is_of_kind(type_)), None)


_KINDS: Sequence[tuple[Callable[[pa.DataType], bool], pa.DataType | None]] = (
    (pa.types.is_uint64, pa.decimal128(20, 0)),
    (pa.types.is_integer, pa.int64()),
    (pa.types.is_floating, pa.float64()),
    (pa.types.is_boolean, None),
    (pa.types.is_decimal, None),
    (pa.types.is_date, pa.date32()),
    (pa.types.is_time, pa.time64("us")),
    (pa.types.is_nested, pa.string()),
    (lambda type_: pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_), pa.string()),
    (pa.types.is_binary, None),
    (lambda type_: pa.types.is_large_binary(type_) or pa.types.is_fixed_size_binary(type_), pa.binary()),
)


def json_texts(column: pa.ChunkedArray[Any]) -> pa.StringArray:
    """Return values as JSON: decimals as text, bytes in base64, maps whose keys are text as objects."""
    maps = _has_maps(column.type)
    return pa.array(
        [None if value is None else _text(_plain(value) if maps else value) for value in column.to_pylist()], pa.string()
    )


def with_json(values: Sequence[Any]) -> pa.Array[Any]:
    """Return an array of values without a schema, in which fields with objects or lists are JSON. Raises Arrow's errors.

    Arrow itself would give all objects of a field the same fields, and takes no list of unlike values.
    """
    objects = [value for value in values if isinstance(value, Mapping)]
    nested = {name for value in objects for name, each in value.items() if isinstance(each, (Mapping, list, tuple))}
    array: Any
    if not nested:
        array = pa.array(values)
        return array  # type: ignore[no-any-return]
    flat = [
        {name: _text(each) if name in nested and each is not None else each for name, each in value.items()}
        if isinstance(value, Mapping)
        else value
        for value in values
    ]
    array = pa.array(flat)
    fields = [field.with_metadata(JSON) if field.name in nested else field for field in array.type]
    return array.cast(pa.struct(fields))  # type: ignore[no-any-return]


def _has_maps(type_: pa.DataType) -> bool:
    if pa.types.is_map(type_):
        return True
    return any(_has_maps(type_.field(number).type) for number in range(type_.num_fields))


def _plain(value: Any) -> Any:
    """Return a value whose maps, which Arrow has as lists of pairs, are objects if their keys are text."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list):
        pairs = bool(value) and all(isinstance(each, tuple) and len(each) == 2 for each in value)
        if pairs and all(isinstance(key, str) for key, _ in value):
            return {key: _plain(each) for key, each in value}
        return [_plain(each) for each in value]
    return [_plain(each) for each in value] if isinstance(value, tuple) else value


def _text(value: Any) -> str:
    try:
        return orjson.dumps(value, default=_other, option=orjson.OPT_NON_STR_KEYS).decode()
    except TypeError:  # an integer of more than 64 bits, or an unpaired surrogate
        return json.dumps(value, default=_other, separators=(",", ":"))


def _other(value: Any) -> Any:
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode()
    if isinstance(value, (Decimal, dt.timedelta, dt.date, dt.time)):
        return str(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")
