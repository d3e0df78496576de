"""The fields of single values by type: schema, conversion from text, and what stands for null. No I/O."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, NamedTuple

from sluiceway.connectors.cdc.columns import FieldType
from sluiceway.connectors.cdc.numbers import (
    DOUBLE,
    PRECISE,
    VARIABLE_DECIMAL,
    binary_field,
    decimal_with_precision,
    variable_decimal,
)
from sluiceway.connectors.cdc.postgres import geometry
from sluiceway.connectors.cdc.postgres.text import (
    INFINITY,
    MINUS_INFINITY,
    parse_bits,
    parse_bytea,
    parse_date,
    parse_hstore,
    parse_interval,
    parse_snapshot_date,
    parse_time,
    parse_timestamp,
    zoned_time,
)
from sluiceway.connectors.cdc.temporal import (
    CONNECT,
    INTERVAL,
    ISO,
    LONG_MAX,
    LONG_MIN,
    MICRO_DURATION,
    ZONED_TIME,
    ZONED_TIMESTAMP,
    date_form,
    fixed_fraction,
    iso_timestamp,
    semantic,
    time_form,
    timestamp_form,
)
from sluiceway.data import Instant, Schema, Type
from sluiceway.data.schema import (
    BOOLEAN_SCHEMA,
    FLOAT32_SCHEMA,
    FLOAT64_SCHEMA,
    INT16_SCHEMA,
    INT32_SCHEMA,
    INT64_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
)
from sluiceway.java.hash_map import hash_map_order

_DATA = "io.debezium.data."
_SECONDS_PER_MONTH_DAYS = 365.25 / 12
_SPECIAL = {"NaN": "NAN", "Infinity": "POSITIVE_INFINITY", "-Infinity": "NEGATIVE_INFINITY"}
_INFINITE_MILLIS = {INFINITY: 9_223_372_036_825_200_000, MINUS_INFINITY: -9_223_372_036_832_400_000}
_INFINITE_MICROS = {INFINITY: LONG_MAX, MINUS_INFINITY: LONG_MIN}
_INFINITE_DAYS = {INFINITY: 106_751_991_167, MINUS_INFINITY: -106_751_991_167}

ARRAY_ELEMENTS = frozenset(
    [
        "int2",
        "int4",
        "int8",
        "oid",
        "text",
        "varchar",
        "bpchar",
        "char",
        "name",
        "citext",
        "numeric",
        "float4",
        "float8",
        "bool",
        "bytea",
        "date",
        "time",
        "timetz",
        "timestamp",
        "timestamptz",
        "json",
        "jsonb",
        "uuid",
        "inet",
        "cidr",
        "macaddr",
        "macaddr8",
        "xml",
        "ltree",
        "tsvector",
        "hstore",
    ]
)
"""The types whose arrays have fields; arrays of ranges have them too."""


class TypeInfo(NamedTuple):
    """A type without its domains."""

    name: str
    typmod: int
    labels: tuple[str, ...]

    @property
    def length(self) -> int | None:
        """The declared length of text and bits, the precision of numbers, or the digits of a second."""
        if self.name == "numeric":
            return self.typmod - 4 >> 16 & 0xFFFF if self.typmod >= 4 else 0
        if self.name in ("varchar", "bpchar"):
            return self.typmod - 4 if self.typmod >= 4 else 2_147_483_647
        if self.name in ("bit", "varbit"):
            return self.typmod if self.typmod > 0 else 2_147_483_647 if self.name == "varbit" else 1
        return _LENGTHS.get(self.name, 2_147_483_647)

    @property
    def scale(self) -> int | None:
        if self.name == "numeric":
            return self.typmod - 4 & 0x7FF if self.typmod >= 4 else 0
        if self.name in _SCALES:
            return self.typmod if self.typmod >= 0 and self.name.startswith("time") else _SCALES[self.name]
        return 0

    @property
    def second_digits(self) -> int:
        """The digits of a second of a time or timestamp."""
        return self.typmod if self.typmod >= 0 else 6


_LENGTHS = {"int2": 5, "int4": 10, "int8": 19, "float4": 8, "float8": 17, "bool": 1, "date": 13, "time": 15, "timetz": 21}
_LENGTHS |= {"timestamp": 29, "timestamptz": 35, "oid": 10}
_SCALES = {"float4": 8, "float8": 17, "time": 6, "timetz": 6, "timestamp": 6, "timestamptz": 6}


@dataclass(frozen=True, slots=True)
class Settings:
    """The handling modes of a config."""

    decimal_mode: str
    binary_mode: str
    time_mode: str
    interval_mode: str
    hstore_mode: str
    money_digits: int
    include_unknown: bool
    placeholder: bytes
    correct: bool

    @property
    def placeholder_text(self) -> str:
        return self.placeholder.decode("utf-8", "replace")


Maker = Callable[[TypeInfo, Settings], FieldType]


def scalar_field(info: TypeInfo, settings: Settings, *, ranges: bool) -> FieldType | None:
    """Return the field of a type, or None for an unknown one."""
    maker = _MAKERS.get(info.name)
    if maker is not None:
        return maker(info, settings)
    return _text_field(STRING_SCHEMA, settings) if ranges else None


def enum_field(labels: tuple[str, ...], settings: Settings) -> FieldType:
    schema = Schema(Type.STRING, name=f"{_DATA}Enum", version=1, parameters={"allowed": ",".join(labels)})
    return _text_field(schema, settings)


def unknown_field(settings: Settings) -> FieldType | None:
    """Return the field of a type that Debezium does not know: nothing, or the bytes of its text."""
    if not settings.include_unknown:
        return None
    return binary_field(settings.binary_mode, lambda raw: str(raw).encode(), settings.placeholder)


def _text_field(schema: Schema, settings: Settings, convert: Callable[[str], Any] = str) -> FieldType:
    return FieldType(schema, convert, "", settings.placeholder_text)


def _semantic_text(name: str) -> Maker:
    schema = semantic(Type.STRING, f"{_DATA}{name}")
    return lambda _info, settings: _text_field(schema, settings)


def _plain_text(_info: TypeInfo, settings: Settings) -> FieldType:
    return _text_field(STRING_SCHEMA, settings)


def _name(_info: TypeInfo, settings: Settings) -> FieldType:
    if settings.correct:
        return _text_field(STRING_SCHEMA, settings)
    return FieldType(STRING_SCHEMA, lambda _text: None, "", settings.placeholder_text, str)


def _number(schema: Schema, convert: Callable[[str], Any], zero: Any) -> Maker:
    return lambda _info, _settings: FieldType(schema, convert, zero)


def _boolean(_info: TypeInfo, _settings: Settings) -> FieldType:
    return FieldType(BOOLEAN_SCHEMA, lambda text: text == "t", fallback=False)


def _numeric(info: TypeInfo, settings: Settings) -> FieldType:
    if settings.decimal_mode == DOUBLE:
        return FieldType(FLOAT64_SCHEMA, float, 0.0)
    if settings.decimal_mode != PRECISE:
        return FieldType(STRING_SCHEMA, lambda text: _SPECIAL.get(text, text), "0")
    if info.typmod < 4:
        zero = variable_decimal(Decimal(0))
        return FieldType(
            VARIABLE_DECIMAL, lambda text: None if text in _SPECIAL else variable_decimal(_shortest(Decimal(text))), zero
        )
    scale = info.scale or 0
    schema = decimal_with_precision(scale, info.length)
    return FieldType(schema, lambda text: None if text in _SPECIAL else scaled(Decimal(text), scale), scaled(Decimal(0), scale))


def _shortest(value: Decimal) -> Decimal:
    """Return a decimal without zeros at the end of its fraction."""
    if not value:
        return Decimal(0)
    sign, digits, exponent = value.as_tuple()
    kept, places = list(digits), -int(exponent)
    while places > 0 and kept[-1] == 0:
        kept.pop()
        places -= 1
    return Decimal((sign, tuple(kept), -places))


def scaled(value: Decimal, scale: int) -> Decimal:
    """Return a decimal with so many digits after the point, which may be more than a context has."""
    sign, digits, exponent = value.as_tuple()
    missing = scale + int(exponent)
    return value if missing <= 0 else Decimal((sign, (*digits, *([0] * missing)), -scale))


def _money(_info: TypeInfo, settings: Settings) -> FieldType:
    unit = Decimal(1).scaleb(-settings.money_digits)

    def amount(text: str) -> Decimal:
        negative = text.startswith(("-", "("))
        number = Decimal("".join(char for char in text if char.isdigit() or char == "."))
        return (-number if negative else number).quantize(unit, ROUND_HALF_UP)

    if settings.decimal_mode == DOUBLE:
        return FieldType(FLOAT64_SCHEMA, lambda text: float(amount(text)), 0.0)
    if settings.decimal_mode != PRECISE:
        return FieldType(STRING_SCHEMA, lambda text: str(amount(text)), "0")
    return FieldType(decimal_with_precision(settings.money_digits, None), amount, Decimal(0).quantize(unit))


def bits_field(info: TypeInfo, _settings: Settings) -> FieldType:
    length = info.length or 1
    if length == 1 and info.name == "bit":
        return FieldType(BOOLEAN_SCHEMA, lambda text: text == "1", fallback=False)
    schema = Schema(Type.BYTES, name=f"{_DATA}Bits", version=1, parameters={"length": str(length)})
    return FieldType(schema, parse_bits, b"")


def _bytea(_info: TypeInfo, settings: Settings) -> FieldType:
    return binary_field(settings.binary_mode, lambda raw: parse_bytea(str(raw)), settings.placeholder)


def _date(_info: TypeInfo, settings: Settings) -> FieldType:
    form = date_form(settings.time_mode)
    zero = form.convert(0)
    snapshot = None if settings.correct else (lambda text: form.convert(parse_snapshot_date(text)))
    return FieldType(form.schema, lambda text: form.convert(parse_date(text)), zero, snapshot=snapshot)


def _time(info: TypeInfo, settings: Settings) -> FieldType:
    form = time_form(settings.time_mode, info.second_digits)
    return FieldType(form.schema, lambda text: form.convert(parse_time(text)), form.convert(0))


def _timetz(_info: TypeInfo, _settings: Settings) -> FieldType:
    return FieldType(ZONED_TIME, zoned_time, "00:00:00Z")


def _timestamp(info: TypeInfo, settings: Settings) -> FieldType:
    form = timestamp_form(settings.time_mode, info.second_digits)
    infinite: dict[str, Any] = dict(_INFINITE_MICROS)
    if settings.time_mode == CONNECT:
        infinite = {text: Instant(millis) for text, millis in _INFINITE_MILLIS.items()}
    elif form.schema.name == "io.debezium.time.Timestamp":
        infinite = dict(_INFINITE_MILLIS)
    elif settings.time_mode == ISO:
        infinite = {INFINITY: INFINITY, MINUS_INFINITY: MINUS_INFINITY}

    def convert(text: str) -> Any:
        return infinite[text] if text in infinite else form.convert(*parse_timestamp(text))

    return FieldType(form.schema, convert, form.convert(0, 0))


def _timestamptz(info: TypeInfo, _settings: Settings) -> FieldType:
    digits = info.second_digits

    def convert(text: str) -> str:
        if text in (INFINITY, MINUS_INFINITY):
            return text
        seconds, micros = parse_timestamp(text)
        return f"{iso_timestamp(seconds, fixed_fraction(micros, digits))}Z"

    return FieldType(ZONED_TIMESTAMP, convert, "1970-01-01T00:00:00Z")


def _interval(_info: TypeInfo, settings: Settings) -> FieldType:
    if settings.interval_mode == "string":
        return FieldType(INTERVAL, _interval_text, "P0Y0M0DT0H0M0S")
    return FieldType(MICRO_DURATION, _interval_micros, 0)


def _interval_micros(text: str) -> int:
    """Return an interval in microseconds, computed in floating point and saturated as in Java."""
    parts = parse_interval(text)
    days = (parts.years * 12 + parts.months) * _SECONDS_PER_MONTH_DAYS + parts.days
    seconds, micros = divmod(abs(parts.micros), 1_000_000)
    sign = -1 if parts.micros < 0 else 1
    total = (days * 86_400 + sign * seconds) * 1e6 + sign * micros
    return min(max(int(total), LONG_MIN), LONG_MAX)


def _interval_text(text: str) -> str:
    parts = parse_interval(text)
    hours, minutes, seconds = parts.clock
    return f"P{parts.years}Y{parts.months}M{parts.days}DT{hours}H{minutes}M{seconds}S"


def _hstore(_info: TypeInfo, settings: Settings) -> FieldType:
    if settings.hstore_mode == "map":
        return FieldType(
            Schema.map(STRING_SCHEMA, OPTIONAL_STRING_SCHEMA),
            parse_hstore,
            {},
            {settings.placeholder_text: settings.placeholder_text},
        )
    return FieldType(semantic(Type.STRING, f"{_DATA}Json"), _hstore_json, "{}", settings.placeholder_text)


def _hstore_json(text: str) -> str:
    pairs = parse_hstore(text)
    ordered = {key: pairs[key] for key in hash_map_order(pairs)}
    return json.dumps(ordered, ensure_ascii=False, separators=(",", ":"))


_JSON, _XML = _semantic_text("Json"), _semantic_text("Xml")

_MAKERS: dict[str, Maker] = {
    "bool": _boolean,
    "int2": _number(INT16_SCHEMA, int, 0),
    "int4": _number(INT32_SCHEMA, int, 0),
    "int8": _number(INT64_SCHEMA, int, 0),
    "oid": _number(INT64_SCHEMA, int, 0),
    "float4": _number(FLOAT32_SCHEMA, float, 0.0),
    "float8": _number(FLOAT64_SCHEMA, float, 0.0),
    "numeric": _numeric,
    "money": _money,
    "bit": bits_field,
    "varbit": bits_field,
    "bytea": _bytea,
    "name": _name,
    "uuid": _semantic_text("Uuid"),
    "json": _JSON,
    "jsonb": _JSON,
    "xml": _XML,
    "ltree": _semantic_text("Ltree"),
    "tsvector": _semantic_text("Tsvector"),
    "date": _date,
    "time": _time,
    "timetz": _timetz,
    "timestamp": _timestamp,
    "timestamptz": _timestamptz,
    "interval": _interval,
    "hstore": _hstore,
    "point": geometry.point,
    "line": geometry.line,
    "circle": geometry.circle,
    "lseg": geometry.lseg,
    "box": geometry.box,
    "path": geometry.path,
    "polygon": geometry.polygon,
    **dict.fromkeys(("text", "varchar", "bpchar", "char", "citext", "inet", "cidr", "macaddr", "macaddr8"), _plain_text),
}
