"""Random schemas, values, batches and configs of transforms, to compare columnar forms with row forms.

Everything follows from a seed.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from sluiceway.data import Schema, Struct, Type
from sluiceway.data.logical import DATE, DECIMAL, TIME, TIMESTAMP, date_schema, decimal_schema, time_schema, timestamp_schema
from sluiceway.java.numbers import to_float32

Options = dict[str, str]

NAMES = ("a", "b", "c", "d", "é", "x.y")
_UTC = dt.timezone.utc
TEXTS = (
    *("", "0", "-0", "7", "+5", " 7", "007", "127", "128", "-129", "32768", "2147483648", "9223372036854775807"),
    *("9223372036854775808", "123456789012345678901", "0x1F", "1e5", "1.5", "-0.0", ".5", "1.", "1f", "NaN", "Infinity"),
    *("1e400", "\u0663", "0.1234567890123456", "12\n", "a\n", "true", "TRUE", "tru", "false", "é", "\u0130", "\U0001f600"),
    *("2020-01-02", "2020-01-02T03:04:05", "2020-01-02T03:04:05.678"),
)
DOUBLES = (0.0, -0.0, 1.0, -1.0, 0.1, 0.9999999, -0.5, 1e10, 2.0**31, -(2.0**31) - 1, 2.0**63, -(2.0**63), 1e300, 5e-324, 3.4e38)
ODD_DOUBLES = (float("nan"), float("inf"), float("-inf"))
_MOMENTS = (0, 1, -1, 999, 86_399_999, 86_400_000, -86_400_001, 1_700_000_000_123, -62_135_596_800_000, 253_402_300_799_999)


class Cases(random.Random):
    """A source of random cases. ``calm`` ones have no values that many transforms refuse."""

    def __init__(self, seed: str) -> None:
        super().__init__(seed)
        self.calm = self.random() < 0.6
        self.schemas: dict[str, Schema | None] = {}
        """The schemas of the records by suffix of the transforms' names."""


def integer(rng: Cases, bits: int) -> int:
    half = 1 << (bits - 1)
    return rng.choice((0, 1, -1, half - 1, -half, rng.randrange(-half, half), rng.randrange(-100, 100)))


def double(rng: Cases) -> float:
    if not rng.calm and rng.random() < 0.1:
        return rng.choice(ODD_DOUBLES)
    return rng.choice((*DOUBLES, rng.uniform(-1000, 1000), float(rng.randrange(-1000, 1000))))


def moment(rng: Cases) -> dt.datetime:
    millis = rng.choice((*_MOMENTS, rng.randrange(-(10**13), 10**13)))
    return dt.datetime(1970, 1, 1, tzinfo=_UTC) + millis * dt.timedelta(milliseconds=1)


def text(rng: Cases) -> str:
    if rng.calm:
        return str(rng.randrange(-128, 128))
    return rng.choice((rng.choice(TEXTS), str(rng.randrange(-200, 200)), f"{rng.uniform(-9, 9):.3f}"))


_SCALARS: dict[str | Type, Callable[[Cases], Any]] = {
    Type.INT8: lambda rng: integer(rng, 8),
    Type.INT16: lambda rng: integer(rng, 16),
    Type.INT32: lambda rng: integer(rng, 32),
    Type.INT64: lambda rng: integer(rng, 64),
    Type.FLOAT32: lambda rng: to_float32(double(rng)),
    Type.FLOAT64: double,
    Type.BOOLEAN: lambda rng: rng.random() < 0.5,
    Type.STRING: text,
    Type.BYTES: lambda rng: rng.randbytes(rng.randrange(4)),
    DATE: lambda rng: moment(rng).date(),
    TIME: lambda rng: moment(rng).time(),
    TIMESTAMP: moment,
}


def scalar_value(rng: Cases, schema: Schema) -> Any:
    if schema.name == DECIMAL:
        number = rng.choice((0, 1, -1, 10**20, rng.randrange(-(10**6), 10**6)))
        return Decimal(number).scaleb(-int(schema.parameters["scale"]))
    return _SCALARS[schema.name if schema.name is not None and schema.name in _SCALARS else schema.type](rng)


def value_of(rng: Cases, schema: Schema, *, nulls: float = 0.15) -> Any:
    """Return a value that fits a schema; null, where that is allowed, with the given probability."""
    if (schema.optional or schema.default is not None) and rng.random() < nulls:
        return None
    if schema.type is Type.STRUCT:
        return Struct.of(schema, [value_of(rng, field.schema, nulls=nulls) for field in schema.fields])
    if schema.type is Type.ARRAY:
        assert schema.value_schema is not None
        return [value_of(rng, schema.value_schema, nulls=nulls) for _ in range(rng.randrange(3))]
    if schema.type is Type.MAP:
        assert schema.value_schema is not None
        return {name: value_of(rng, schema.value_schema, nulls=nulls) for name in rng.sample(NAMES, rng.randrange(3))}
    return scalar_value(rng, schema)


_PRIMITIVE = tuple(Schema(type_) for type_ in _SCALARS if isinstance(type_, Type))
_LOGICAL = (decimal_schema(0), decimal_schema(2), decimal_schema(5), date_schema(), time_schema(), timestamp_schema())


def schema_of_value(rng: Cases, depth: int = 2) -> Schema:
    """Return a random schema with at most ``depth`` levels of structs, arrays and maps."""
    kind = rng.random() if depth else 1.0
    attributes: dict[str, Any] = {
        "optional": rng.random() < 0.5,
        "doc": rng.choice((None, None, "a doc")),
        "version": rng.choice((None, None, 3)),
    }
    if kind < 0.15:
        return struct_schema(rng, depth - 1, **attributes)
    if kind < 0.25:
        return Schema.array(schema_of_value(rng, depth - 1), **attributes)
    if kind < 0.3:
        return Schema.map(Schema(Type.STRING), schema_of_value(rng, depth - 1), **attributes)
    base = rng.choice(_PRIMITIVE if rng.random() < 0.7 else _LOGICAL)
    if base.name is not None:
        attributes.pop("version")
    elif rng.random() < 0.1:
        attributes |= {"name": "com.x.Named", "parameters": {"p": "q"}}
    if rng.random() < 0.2:
        attributes["default"] = scalar_value(rng, base)
    return base.replace(**attributes)


def struct_schema(rng: Cases, depth: int = 2, **attributes: Any) -> Schema:
    names = rng.sample(NAMES, rng.randrange(0 if rng.random() < 0.05 else 3, 7) if depth else rng.randrange(4))
    name = rng.choice((None, "com.x.Record"))
    return Schema.struct([(each, schema_of_value(rng, depth)) for each in names], name=name, **attributes)


def data(rng: Cases, count: int) -> tuple[Schema | None, list[Any]]:
    """Return a schema and values of it: mostly structs, sometimes values without a schema, or only nulls."""
    kind = rng.random()
    if kind < 0.02:
        return None, [None] * count
    if kind < 0.2:
        return None, schemaless_values(rng, count)
    kind = (kind - 0.2) / 0.8
    optional = rng.random() < 0.3
    schema = schema_of_value(rng) if kind < 0.2 else struct_schema(rng, optional=optional)
    if schema.type is Type.STRUCT and schema.fields and rng.random() < 0.05:
        schema = schema.replace(default=value_of(rng, schema.replace(optional=False), nulls=0.1))
    nulls = rng.choice((0.0, 0.0, 0.0, 0.3, 1.0))
    values = [None if _may_be_null(schema) and rng.random() < nulls else value_of(rng, schema, nulls=0.15) for _ in range(count)]
    return schema, values


def schemaless_values(rng: Cases, count: int) -> list[Any]:
    """Return values as JsonConverter reads them without schemas: mostly maps with the same fields."""
    names = rng.sample(NAMES, rng.randrange(2, 6))
    nulls = rng.choice((0.0, 0.0, 0.2))
    made = {name: rng.choice(_SCHEMALESS) for name in names}

    def value() -> Any:
        if rng.random() < nulls:
            return None
        if rng.random() < (0.02 if rng.calm else 0.2):
            return schemaless_item(rng)
        kept = [name for name in names if rng.calm or rng.random() < 0.9]
        return {name: made[name](rng) if rng.calm or rng.random() < 0.9 else schemaless_item(rng) for name in kept}

    return [value() for _ in range(count)]


def schemaless_item(rng: Cases) -> Any:
    return rng.choice(_SCHEMALESS)(rng)


_SCHEMALESS: tuple[Callable[[Cases], Any], ...] = (
    text,
    text,
    lambda rng: integer(rng, 64),
    lambda rng: integer(rng, 64),
    double,
    lambda rng: rng.random() < 0.5,
    lambda rng: None,
    lambda rng: [schemaless_item(rng) for _ in range(rng.randrange(3))],
    lambda rng: {name: schemaless_item(rng) for name in rng.sample(NAMES, rng.randrange(3))},
)


def _may_be_null(schema: Schema) -> bool:
    return schema.optional or schema.default is not None


def fields(rng: Cases, part: str, count: int = 2, suits: Callable[[Schema], bool] = lambda _: True) -> list[str]:
    """Return names of 1 to ``count`` fields: calm cases have existing fields that suit the transform if there are any."""
    schema = rng.schemas.get(part or "$Value")
    known = [field.name for field in schema.fields if "." not in field.name and suits(field.schema)] if schema else []
    names = known if known and (rng.calm or rng.random() < 0.3) else NAMES[:5]
    return rng.sample(names, min(len(names), rng.randrange(1, count + 1)))


def _has_type(*types: Type | str) -> Callable[[Schema], bool]:
    return lambda schema: (schema.name or schema.type) in types or schema.type in types


def _flag(rng: Cases) -> Options:
    return {} if rng.random() < 0.7 else {"replace.null.with.default": "false"}


def _insert(rng: Cases, part: str) -> Options:
    suffix = rng.choice(("", "", "?", "!"))
    options: Options = {}
    for name in rng.sample(("topic", "partition", "offset", "timestamp", "static"), rng.randrange(1, 4)):
        options[f"{name}.field"] = ("a" if rng.random() < 0.05 else f"_{name}") + suffix
        if name == "static":
            options["static.value"] = rng.choice(("x", "é", ""))
    return options | _flag(rng)


def _mask(rng: Cases, part: str) -> Options:
    replacement = rng.choice((None, None, "12", "x", "1.5"))
    if replacement is None:
        suits = _has_type(*(type_ for type_ in Type if type_ not in (Type.BYTES, Type.STRUCT)))
        return {"fields": ",".join(fields(rng, part, 3, suits))} | _flag(rng)
    numbers = () if replacement == "x" else (Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.FLOAT32, Type.FLOAT64)
    return {"fields": ",".join(fields(rng, part, 3, _has_type(Type.STRING, *numbers))), "replacement": replacement} | _flag(rng)


def _replace(rng: Cases, part: str) -> Options:
    options = _flag(rng)
    if rng.random() < 0.5:
        options["exclude"] = ",".join(fields(rng, part))
    if rng.random() < 0.3:
        options["include"] = ",".join(fields(rng, part, 4))
    if rng.random() < 0.6:
        options["renames"] = ",".join(f"{old}:{rng.choice(('z', 'y', 'a', 'b'))}" for old in fields(rng, part))
    return options


_TARGETS = ("int8", "int16", "int32", "int64", "float32", "float64", "boolean", "string")


def _cast(rng: Cases, part: str) -> Options:
    if rng.random() < 0.15:
        return {"spec": rng.choice(_TARGETS)} | _flag(rng)
    castable = _has_type(*(type_ for type_ in Type if type_.primitive and type_ is not Type.BYTES))
    return {"spec": ",".join(f"{name}:{rng.choice(_TARGETS)}" for name in fields(rng, part, 4, castable))} | _flag(rng)


def _extract(rng: Cases, part: str) -> Options:
    if rng.random() < 0.3:
        return {"field": ".".join(fields(rng, part, 3)), "field.syntax.version": "V2"} | _flag(rng)
    return {"field": fields(rng, part, 1)[0]} | _flag(rng)


def _metadata(rng: Cases, part: str) -> Options:
    return rng.choice(({"schema.name": "N"}, {"schema.version": "7"}, {"schema.name": "N", "schema.version": "7"})) | _flag(rng)


def _timestamps(rng: Cases, part: str) -> Options:
    options = {"target.type": rng.choice(("string", "unix", "Date", "Time", "Timestamp"))} | _flag(rng)
    options["format"] = rng.choice(("yyyy-MM-dd", "yyyy-MM-dd'T'HH:mm:ss.SSS", "y"))
    options["unix.precision"] = rng.choice(("milliseconds", "seconds", "microseconds", "nanoseconds"))
    moments = _has_type(Type.INT64, DATE, TIME, TIMESTAMP, *(() if rng.calm else (Type.STRING,)))
    return options | ({} if rng.random() < 0.1 else {"field": fields(rng, part, 1, moments)[0]})


def _timestamp_router(rng: Cases, part: str) -> Options:
    formats = ("yyyyMMdd", "yyyy-MM-dd'T'HH", "yyyyMM", "HH", "mm:ss", "EEE", "yyyy.S", "'q'yyyy''", "D w", "bad b")
    return {"timestamp.format": rng.choice(formats), "topic.format": rng.choice(("${topic}-${timestamp}", "t", "${timestamp}"))}


_JAVA = "org.apache.kafka.connect.transforms."
_EITHER = ("$Key", "$Value", "$Value", "$Value")
TRANSFORMS: dict[str, tuple[Sequence[str], Callable[[Cases, str], Options]]] = {
    "InsertField": (_EITHER, _insert),
    "MaskField": (_EITHER, _mask),
    "ReplaceField": (_EITHER, _replace),
    "Cast": (_EITHER, _cast),
    "ExtractField": (_EITHER, _extract),
    "HoistField": (_EITHER, lambda rng, part: {"field": rng.choice(NAMES)}),
    "Flatten": (_EITHER, lambda rng, part: {"delimiter": rng.choice((".", "_"))}),
    "ValueToKey": (("",), lambda rng, part: {"fields": ",".join(fields(rng, part))} | _flag(rng)),
    "TimestampConverter": (_EITHER, _timestamps),
    "TimestampRouter": (("",), _timestamp_router),
    "RegexRouter": (("",), lambda rng, part: {"regex": rng.choice(("(.)(.*)", "or.*", "no")), "replacement": "$0x"}),
    "SetSchemaMetadata": (_EITHER, _metadata),
    "DropHeaders": (("",), lambda rng, part: {"headers": "h"}),
    "InsertHeader": (("",), lambda rng, part: {"header": "h", "value.literal": "1"}),
    "HeaderFrom": (_EITHER[:2], lambda rng, part: {"fields": "a", "headers": "h", "operation": rng.choice(("move", "copy"))}),
}
"""The variants and the random options of each of Connect's transforms; Filter needs a predicate."""

PREDICATES: dict[str, Callable[[Cases], Options]] = {
    "RecordIsTombstone": lambda _: {"type": _JAVA + "predicates.RecordIsTombstone"},
    "HasHeaderKey": lambda _: {"type": _JAVA + "predicates.HasHeaderKey", "name": "h"},
    "TopicNameMatches": lambda rng: {"type": _JAVA + "predicates.TopicNameMatches", "pattern": rng.choice(("o.*", "x"))},
    "TimestampBetween": lambda rng: {
        "type": "sluiceway.transforms.predicates.timestamp_between.TimestampBetween",
        "from.ms": "0",
        "to.ms": str(rng.choice((1_000, 1_700_000_000_123))),
    },
}
"""The random options of each predicate."""


def stage(rng: Cases, name: str) -> Options:
    """Return the options of a random configuration of a transform, with its type."""
    variants, options = TRANSFORMS[name]
    variant = rng.choice(variants)
    return {"type": f"{_JAVA}{name}{variant}"} | options(rng, variant)


def chain_config(
    rng: Cases, names: Sequence[str], *, predicates: float, predicate_names: Sequence[str] = tuple(PREDICATES)
) -> Options:
    """Return the config of a chain; each transform has a predicate with the given probability. Filter always has one."""
    config: Options = {"transforms": ",".join(f"t{at}" for at in range(len(names)))}
    conditions: list[str] = []
    for at, name in enumerate(names):
        options = {"type": _JAVA + "Filter"} if name == "Filter" else stage(rng, name)
        if name == "Filter" or rng.random() < predicates:
            conditions.append(f"p{at}")
            options |= {"predicate": f"p{at}", "negate": rng.choice(("true", "false"))}
            config |= {f"predicates.p{at}.{key}": value for key, value in PREDICATES[rng.choice(predicate_names)](rng).items()}
        config |= {f"transforms.t{at}.{key}": value for key, value in options.items()}
    return config | {"predicates": ",".join(conditions)}
