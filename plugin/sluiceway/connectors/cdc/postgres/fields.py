"""The fields of single values by type: schema, conversion from text, and what stands for null. No I/O."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from sluiceway.connectors.cdc import json_forms
from sluiceway.connectors.cdc.columns import FieldType
from sluiceway.connectors.cdc.json_forms import JsonForm
from sluiceway.connectors.cdc.numbers import (
    DOUBLE,
    PRECISE,
    VARIABLE_DECIMAL,
    binary_field,
    decimal_with_precision,
    variable_decimal,
)
from sluiceway.connectors.cdc.postgres import geometry, temporal_fields
from sluiceway.connectors.cdc.postgres.text import parse_bits, parse_bytea, parse_hstore
from sluiceway.connectors.cdc.postgres.type_info import Maker, TypeInfo, TypeSettings
from sluiceway.connectors.cdc.temporal import semantic
from sluiceway.data import Schema, Type
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
_SPECIAL = {"NaN": "NAN", "Infinity": "POSITIVE_INFINITY", "-Infinity": "NEGATIVE_INFINITY"}


def scalar_field(info: TypeInfo, settings: TypeSettings, *, ranges: bool) -> FieldType | None:
    """Return the field of a type, or None for an unknown one."""
    maker = _MAKERS.get(info.name)
    if maker is not None:
        return maker(info, settings)
    return _text_field(STRING_SCHEMA, settings) if ranges else None


def enum_field(labels: tuple[str, ...], settings: TypeSettings) -> FieldType:
    schema = Schema(Type.STRING, name=f"{_DATA}Enum", version=1, parameters={"allowed": ",".join(labels)})
    return replace(_text_field(schema, settings), json=json_forms.Remembered(json_forms.quote))


def unknown_field(settings: TypeSettings) -> FieldType | None:
    """Return the field of a type that Debezium does not know: nothing, or the bytes of its text."""
    if not settings.include_unknown:
        return None
    return binary_field(settings.binary_mode, lambda raw: str(raw).encode(), settings.placeholder)


def _text_field(schema: Schema, settings: TypeSettings, convert: Callable[[str], Any] = str) -> FieldType:
    return FieldType(schema, convert, "", settings.placeholder_text, json=json_forms.text)


def _semantic_text(name: str) -> Maker:
    schema = semantic(Type.STRING, f"{_DATA}{name}")
    return lambda _info, settings: _text_field(schema, settings)


def _plain_text(_info: TypeInfo, settings: TypeSettings) -> FieldType:
    return _text_field(STRING_SCHEMA, settings)


def _name(_info: TypeInfo, settings: TypeSettings) -> FieldType:
    if settings.correct:
        return _text_field(STRING_SCHEMA, settings)
    field = FieldType(STRING_SCHEMA, lambda _text: None, "", settings.placeholder_text, str)
    return replace(field, snapshot_json=json_forms.text)


def _uuid(_info: TypeInfo, settings: TypeSettings) -> FieldType:
    return replace(_text_field(_UUID, settings), json=json_forms.plain_text)


def _number(schema: Schema, convert: Callable[[str], Any], zero: Any, form: JsonForm | None) -> Maker:
    return lambda _info, _settings: FieldType(schema, convert, zero, json=form)


def _boolean(_info: TypeInfo, _settings: TypeSettings) -> FieldType:
    return FieldType(BOOLEAN_SCHEMA, lambda text: text == "t", fallback=False, json=json_forms.boolean_text)


def _numeric(info: TypeInfo, settings: TypeSettings) -> FieldType:
    if settings.decimal_mode == DOUBLE:
        return FieldType(FLOAT64_SCHEMA, float, 0.0, json=json_forms.double)
    if settings.decimal_mode != PRECISE:
        form = json_forms.Calculated(lambda text: f'"{_SPECIAL.get(text, text)}"')
        return FieldType(STRING_SCHEMA, lambda text: _SPECIAL.get(text, text), "0", json=form)
    if info.typmod < 4:
        zero = variable_decimal(Decimal(0))
        return FieldType(
            VARIABLE_DECIMAL,
            lambda text: None if text in _SPECIAL else variable_decimal(_shortest(Decimal(text))),
            zero,
            json=json_forms.variable_decimal_text,
        )
    scale = info.scale or 0
    schema = decimal_with_precision(scale, info.length)
    return FieldType(
        schema,
        lambda text: None if text in _SPECIAL else scaled(Decimal(text), scale),
        scaled(Decimal(0), scale),
        json=json_forms.DecimalText(scale),
    )


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


def _money(_info: TypeInfo, settings: TypeSettings) -> FieldType:
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


def bits_field(info: TypeInfo, _settings: TypeSettings) -> FieldType:
    length = info.length or 1
    if length == 1 and info.name == "bit":
        return FieldType(BOOLEAN_SCHEMA, lambda text: text == "1", fallback=False)
    schema = Schema(Type.BYTES, name=f"{_DATA}Bits", version=1, parameters={"length": str(length)})
    return FieldType(schema, parse_bits, b"")


def _bytea(_info: TypeInfo, settings: TypeSettings) -> FieldType:
    field = binary_field(settings.binary_mode, lambda raw: parse_bytea(str(raw)), settings.placeholder)
    return replace(field, json=json_forms.hex_as_base64) if field.schema.type is Type.BYTES else field


def _hstore(_info: TypeInfo, settings: TypeSettings) -> FieldType:
    if settings.hstore_mode == "map":
        return FieldType(
            Schema.map(STRING_SCHEMA, OPTIONAL_STRING_SCHEMA),
            parse_hstore,
            {},
            {settings.placeholder_text: settings.placeholder_text},
        )
    unavailable = _json({settings.placeholder_text: settings.placeholder_text})
    return FieldType(semantic(Type.STRING, f"{_DATA}Json"), _hstore_json, "{}", unavailable)


def _hstore_json(text: str) -> str:
    pairs = parse_hstore(text)
    return _json({key: pairs[key] for key in hash_map_order(pairs)})


def _json(pairs: Mapping[str, str | None]) -> str:
    return json.dumps(pairs, ensure_ascii=False, separators=(",", ":"))


_UUID = semantic(Type.STRING, f"{_DATA}Uuid")
_JSON, _XML = _semantic_text("Json"), _semantic_text("Xml")

_MAKERS: dict[str, Maker] = {
    "bool": _boolean,
    "int2": _number(INT16_SCHEMA, int, 0, json_forms.verbatim),
    "int4": _number(INT32_SCHEMA, int, 0, json_forms.verbatim),
    "int8": _number(INT64_SCHEMA, int, 0, json_forms.verbatim),
    "oid": _number(INT64_SCHEMA, int, 0, json_forms.verbatim),
    "float4": _number(FLOAT32_SCHEMA, float, 0.0, None),
    "float8": _number(FLOAT64_SCHEMA, float, 0.0, json_forms.double),
    "numeric": _numeric,
    "money": _money,
    "bit": bits_field,
    "varbit": bits_field,
    "bytea": _bytea,
    "name": _name,
    "uuid": _uuid,
    "json": _JSON,
    "jsonb": _JSON,
    "xml": _XML,
    "ltree": _semantic_text("Ltree"),
    "tsvector": _semantic_text("Tsvector"),
    "date": temporal_fields.date_field,
    "time": temporal_fields.time_field,
    "timetz": temporal_fields.timetz_field,
    "timestamp": temporal_fields.timestamp_field,
    "timestamptz": temporal_fields.timestamptz_field,
    "interval": temporal_fields.interval_field,
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
