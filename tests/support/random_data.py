"""Random schemas and values from a seed: much faster than Hypothesis, which support.connect_data uses, for many cases."""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Callable
from random import Random
from typing import Any

from sluiceway.data import Schema, Struct, Type, date_schema, decimal_schema, time_schema, timestamp_schema
from sluiceway.data.logical import decimal_of, decimal_scale

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
_BITS = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}
_CHARACTERS = 'abcXYZ 09_-."\\/\n\t\r\x00\x1f\x7f,:{}[]é\u2028\ud7ff\ufffd😀'
_PRIMITIVE = [*_BITS, Type.FLOAT32, Type.FLOAT64, Type.BOOLEAN, Type.STRING, Type.BYTES]


def random_schema(rng: Random, depth: int = 3) -> Schema:
    """A schema of any type with at most ``depth`` levels of arrays, maps and structs; some are optional or have a default."""
    optional = rng.random() < 0.4
    kind = rng.randrange(16 if depth else 12)
    if kind < 9:
        schema = Schema(_PRIMITIVE[kind], optional=optional)
    elif kind < 12:
        logical = rng.choice([decimal_schema(rng.randrange(20)), date_schema(), time_schema(), timestamp_schema()])
        schema = logical.replace(optional=optional)
    elif kind == 12:
        return Schema.array(random_schema(rng, depth - 1), optional=optional)
    elif kind == 13:
        keys = Schema(rng.choice([Type.STRING, Type.STRING, Type.INT32, Type.BOOLEAN]))
        return Schema.map(keys, random_schema(rng, depth - 1), optional=optional)
    else:
        names = {random_text(rng) or "field" for _ in range(rng.randrange(8))}
        return Schema.struct({name: random_schema(rng, depth - 1) for name in sorted(names)}, optional=optional)
    return schema.replace(default=_value(rng, schema)) if rng.random() < 0.15 else schema


def random_value(rng: Random, schema: Schema | None) -> Any:
    """A value of a schema, null where that is allowed, also for a field with a default."""
    assert schema is not None
    nullable = schema.optional or schema.default is not None
    return None if nullable and rng.random() < 0.2 else _value(rng, schema)


def _value(rng: Random, schema: Schema) -> Any:
    if schema.name is not None:
        return _logical(rng, schema)
    if schema.type in _BITS:
        return random_integer(rng, _BITS[schema.type])
    return _VALUES[schema.type](rng, schema)


def random_integer(rng: Random, bits: int) -> int:
    half = 1 << (bits - 1)
    return rng.choice([0, 1, -1, half - 1, -half, rng.randrange(-half, half), rng.randrange(-half, half) >> rng.randrange(bits)])


def random_text(rng: Random) -> str:
    return "".join(rng.choices(_CHARACTERS, k=rng.randrange(12)))


def random_float(rng: Random, *, single: bool = False) -> float:
    """A float, special ones included; with ``single`` one that 32 bits hold."""
    special = [0.0, -0.0, 1.0, 0.1, 1e7, 1e-3, float("nan"), float("inf"), float("-inf"), 16777217.0]
    usual = [rng.uniform(-1e4, 1e4), float(rng.randrange(-(10**9), 10**9)), round(rng.uniform(0, 1e6), 2)]
    number = rng.choice([*special, *usual, *usual, struct.unpack(">d", rng.randbytes(8))[0]])
    if not single:
        return number
    return float(
        struct.unpack(">f", rng.randbytes(4))[0] if abs(number) > 1e38 else struct.unpack(">f", struct.pack(">f", number))[0]
    )


def _logical(rng: Random, schema: Schema) -> Any:
    if schema.type is Type.BYTES:
        number = rng.choice([random_integer(rng, 64), rng.randrange(-(10**37), 10**37), 10**38 - 1])
        return decimal_of(number, decimal_scale(schema))
    if schema == date_schema(optional=schema.optional, default=schema.default):
        return dt.date.fromordinal(rng.choice([1, 719163, rng.randrange(1, 3652060)]))
    if schema.type is Type.INT32:
        return (_EPOCH + dt.timedelta(milliseconds=rng.randrange(86_400_000))).time()
    return _EPOCH + dt.timedelta(milliseconds=rng.choice([0, -1, rng.randrange(-62_135_596_800_000, 253_402_300_800_000)]))


def _map(rng: Random, schema: Schema) -> dict[Any, Any]:
    count = rng.randrange(4)
    return {_value(rng, schema.key_schema or schema): random_value(rng, schema.value_schema) for _ in range(count)}


_VALUES: dict[Type, Callable[[Random, Schema], Any]] = {
    Type.FLOAT32: lambda rng, _: random_float(rng, single=True),
    Type.FLOAT64: lambda rng, _: random_float(rng),
    Type.BOOLEAN: lambda rng, _: rng.random() < 0.5,
    Type.STRING: lambda rng, _: random_text(rng),
    Type.BYTES: lambda rng, _: rng.randbytes(rng.randrange(9)),
    Type.ARRAY: lambda rng, schema: [random_value(rng, schema.value_schema) for _ in range(rng.randrange(4))],
    Type.MAP: _map,
    Type.STRUCT: lambda rng, schema: Struct.of(schema, [random_value(rng, field.schema) for field in schema.fields]),
}
