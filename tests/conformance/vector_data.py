"""Converts between the vectors' data format (schema JSON, payloads, typed nodes) and Sluiceway's schemas and values.

The format is described beside the vectors. No converter is used here.
"""

from __future__ import annotations

import base64
import datetime as dt
import math
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from struct import pack
from typing import Any

from sluiceway.data import Schema, Struct, Type, validate_value
from sluiceway.data.instant import Instant
from sluiceway.data.numbers import BigInteger, Float32, Int8, Int16, Int32
from sluiceway.errors import DataError
from sluiceway.java.hash_map import grown_table_size, string_hash
from sluiceway.java.numbers import java_float, to_float32, wrap

Json = Any

_LOGICAL = "org.apache.kafka.connect.data."
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
_DAY_MS = 86_400_000
_MS = dt.timedelta(milliseconds=1)


# --- reading -----------------------------------------------------------------------------------------------------------


def read_schema(node: Json) -> Schema | None:
    """Return the schema of schema JSON; None for none."""
    if node is None:
        return None
    type_ = Type(node["type"])
    attributes: dict[str, Any] = {
        "optional": bool(node.get("optional", False)),
        "name": node.get("name"),
        "version": node.get("version"),
        "doc": node.get("doc"),
        "parameters": node.get("parameters"),
    }
    if type_ is Type.ARRAY:
        attributes["value_schema"] = read_schema(node.get("items"))
    elif type_ is Type.MAP:
        attributes["key_schema"] = read_schema(node.get("keys"))
        attributes["value_schema"] = read_schema(node.get("values"))
    elif type_ is Type.STRUCT:
        attributes["fields"] = [(field["field"], read_schema(field)) for field in node["fields"]]
    if node.get("default") is not None:
        attributes["default"] = read_payload(Schema(type_, **attributes), node["default"])
    return Schema(type_, **attributes)


def read_data(node: Json, name: str = "payload") -> tuple[Schema | None, Any]:
    """Return the schema and value of ``{schema, payload}`` (of a header: ``{schema, value}``)."""
    schema = read_schema(node.get("schema"))
    if "typed" in node:
        return schema, _read_typed(node["typed"], schema)
    if "struct_schema" in node:
        return schema, read_payload(read_schema(node["struct_schema"]), node.get(name))
    return schema, read_payload(schema, node.get(name))


def read_payload(schema: Schema | None, node: Json) -> Any:
    if node is None:
        return None
    if schema is None:
        return _read_json(node)
    read = _LOGICAL_READERS.get(schema.name or "")
    if read is not None and type(node) in (int, str):
        return read(schema, node)
    if schema.type in (Type.FLOAT32, Type.FLOAT64):
        return float("inf" if node == "Infinity" else "-inf" if node == "-Infinity" else node)
    if schema.type is Type.BYTES:
        return base64.b64decode(node)
    if schema.type is Type.ARRAY:
        return [read_payload(schema.value_schema, item) for item in node]
    if schema.type is Type.MAP:
        pairs = node.items() if isinstance(node, dict) else node
        entries = ((read_payload(schema.key_schema, key), read_payload(schema.value_schema, item)) for key, item in pairs)
        return hash_map(entries, schema.key_schema)
    if schema.type is Type.STRUCT:
        fields = {field.name: read_payload(field.schema, node.get(field.name)) for field in schema.fields}
        return Struct(schema, {field: value for field, value in fields.items() if value is not None})
    return node


def _read_json(node: Json) -> Any:
    if isinstance(node, dict):
        return hash_map((key, _read_json(item)) for key, item in node.items())
    return [_read_json(item) for item in node] if isinstance(node, list) else node


def hash_map(pairs: Iterable[tuple[Any, Any]], keys: Schema | None = None) -> dict[Any, Any]:
    """Return a dict in the iteration order of a Java HashMap filled in this order; a vector's objects are such maps."""
    entries = dict(pairs)
    buckets = grown_table_size(len(entries))
    return dict(sorted(entries.items(), key=lambda entry: _spread(_hash_code(entry[0], keys)) & (buckets - 1)))


def _spread(code: int) -> int:
    code &= 0xFFFFFFFF
    return code ^ code >> 16


def _hash_code(key: Any, schema: Schema | None) -> int:
    """Return the ``hashCode`` of the key's Java class; the schema decides the width of numbers."""
    if isinstance(key, bool):
        return 1231 if key else 1237
    if isinstance(key, float):
        single = isinstance(key, Float32) or (schema is not None and schema.type is Type.FLOAT32)
        return _folded(int.from_bytes(pack(">f" if single else ">d", key), "big"))
    if isinstance(key, (Int8, Int16, Int32)) or (isinstance(key, int) and schema is not None and schema.type is not Type.INT64):
        return int(key)
    if isinstance(key, int):
        return _folded(key)
    if isinstance(key, str):
        return string_hash(key)
    return _folded(_millis(key)) if isinstance(key, (dt.date, dt.time, Instant)) else 0


def _folded(bits: int) -> int:
    return bits ^ (bits & (1 << 64) - 1) >> 32


def _read_decimal(schema: Schema, node: str) -> Decimal:
    unscaled = int.from_bytes(base64.b64decode(node), "big", signed=True)
    return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -int(schema.parameters["scale"])))


def _moment(millis: int) -> Any:
    try:
        return _EPOCH + millis * _MS
    except OverflowError:
        return Instant(millis)


def _date(days: int) -> Any:
    try:
        return dt.date.fromordinal(_EPOCH.toordinal() + days)
    except (OverflowError, ValueError):
        return Instant(days * _DAY_MS)


def _time(millis: int) -> Any:
    return (_EPOCH + millis * _MS).time() if 0 <= millis < _DAY_MS else Instant(millis)


_LOGICAL_READERS: dict[str, Callable[[Schema, Any], Any]] = {
    _LOGICAL + "Decimal": _read_decimal,
    _LOGICAL + "Date": lambda _, node: _date(node),
    _LOGICAL + "Time": lambda _, node: _time(node),
    _LOGICAL + "Timestamp": lambda _, node: _moment(node),
}

_KIND_OF_TYPE = {Type.INT8: "int8", Type.INT16: "int16", Type.INT32: "int32", Type.FLOAT32: "float32"}
_NARROW = {"int8": Int8, "int16": Int16, "int32": Int32, "float32": Float32}


def _read_typed(node: Json, schema: Schema | None) -> Any:
    """Return the value of a typed node. Numbers of the schema's type are plain Python numbers."""
    if node is None:
        return None
    kind, value = node["t"], node["v"]
    if kind in _NARROW:
        number = float(value) if kind == "float32" else value
        fits = schema is not None and schema.name not in _LOGICAL_READERS and _KIND_OF_TYPE.get(schema.type) == kind
        return number if fits else _NARROW[kind](number)
    keys, inner = (None, None) if schema is None else (schema.key_schema, schema.value_schema)
    readers: dict[str, Callable[[Any], Any]] = {
        "float64": float,
        "bytes": base64.b64decode,
        "decimal": Decimal,
        "biginteger": lambda text: BigInteger(text),
        "date": _moment,
        "array": lambda items: [_read_typed(item, inner) for item in items],
        "map": lambda pairs: hash_map((_read_typed(key, keys), _read_typed(item, inner)) for key, item in pairs),
        "struct": lambda payload: read_payload(read_schema(node["schema"]), payload),
    }
    return readers[kind](value) if kind in readers else value


# --- writing -----------------------------------------------------------------------------------------------------------


def write_schema(schema: Schema | None) -> Json:
    """Return a schema as schema JSON."""
    if schema is None:
        return None
    node: dict[str, Any] = {"type": schema.type.value, "optional": schema.optional}
    for name in ("name", "version", "doc"):
        if getattr(schema, name) is not None:
            node[name] = getattr(schema, name)
    if schema.parameters:
        node["parameters"] = dict(schema.parameters)
    if schema.default is not None:
        node["default"] = write_payload(schema, schema.default)
    if schema.type is Type.ARRAY:
        node["items"] = write_schema(schema.value_schema)
    elif schema.type is Type.MAP:
        node["keys"], node["values"] = write_schema(schema.key_schema), write_schema(schema.value_schema)
    elif schema.type is Type.STRUCT:
        node["fields"] = [{**write_schema(field.schema), "field": field.name} for field in schema.fields]
    return node


def write_data(schema: Schema | None, value: Any, name: str = "payload") -> Json:
    """Return a schema and value as ``{schema, payload}``, with ``typed`` for parts without a schema."""
    fits = value is None or not _schema_everywhere(schema) or _fits(schema, value)
    node = {"schema": write_schema(schema), name: write_payload(schema if fits else None, value)}
    if value is not None and not (_schema_everywhere(schema) and fits):
        node["typed"] = _write_typed(schema, value)
    return node


def _fits(schema: Schema | None, value: Any) -> bool:
    try:
        validate_value(schema, value) if schema is not None else None
    except DataError:
        return False
    return True


def _schema_everywhere(schema: Schema | None) -> bool:
    if schema is None:
        return False
    if schema.type is Type.MAP:
        return _schema_everywhere(schema.key_schema) and _schema_everywhere(schema.value_schema)
    return schema.type is not Type.ARRAY or _schema_everywhere(schema.value_schema)


def write_payload(schema: Schema | None, value: Any) -> Json:
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, float):
        if isinstance(value, Float32) or (schema is not None and schema.type is Type.FLOAT32):
            value = float(java_float(to_float32(value)))  # the shortest text of it
        return float(value) if math.isfinite(value) else "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, int):
        return int(value)
    if isinstance(value, Struct):
        pairs = ((field, value.get_without_default(field.name)) for field in value.schema.fields)
        return {field.name: write_payload(field.schema, item) for field, item in pairs}
    if isinstance(value, Mapping):
        return _write_map(schema, value)
    if isinstance(value, (list, tuple)):
        inner = schema.value_schema if schema is not None else None
        return [write_payload(inner, item) for item in value]
    return _write_scalar(schema, value)


def _write_map(schema: Schema | None, value: Mapping[Any, Any]) -> Json:
    keys = schema.key_schema if schema is not None else None
    values = schema.value_schema if schema is not None else None
    if all(isinstance(key, str) for key in value) and (schema is None or (keys is not None and keys.type is Type.STRING)):
        return {key: write_payload(values, item) for key, item in value.items()}
    return [[write_payload(keys, key), write_payload(values, item)] for key, item in value.items()]


def _write_scalar(schema: Schema | None, value: Any) -> Json:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode()
    if isinstance(value, Decimal):
        fits = schema is not None and schema.parameters.get("scale") == str(-int(value.as_tuple().exponent))
        return _write_unscaled(value) if fits else str(value)
    if schema is not None and schema.name == _LOGICAL + "Date":
        return wrap(_millis(value) // _DAY_MS, 32)
    return _millis(value)


def _write_unscaled(value: Decimal) -> str:
    sign, digits, _ = value.as_tuple()
    unscaled = int("".join(map(str, digits)) or "0") * (-1 if sign else 1)
    bits = unscaled.bit_length() if unscaled >= 0 else (unscaled + 1).bit_length()
    return base64.b64encode(unscaled.to_bytes(bits // 8 + 1, "big", signed=True)).decode()


def _millis(value: Any) -> int:
    if isinstance(value, Instant):
        return value.millis
    if isinstance(value, dt.datetime):
        return (value - _EPOCH) // _MS
    if isinstance(value, dt.date):
        return (value.toordinal() - _EPOCH.toordinal()) * _DAY_MS
    if isinstance(value, dt.time):
        return ((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000
    raise TypeError(f"{type(value).__name__} has no form in a vector")


_KINDS: list[tuple[type, str]] = [
    (bool, "boolean"),
    (Int8, "int8"),
    (Int16, "int16"),
    (Int32, "int32"),
    (BigInteger, "biginteger"),
    (int, "int64"),
    (Float32, "float32"),
    (float, "float64"),
    (str, "string"),
    (bytes, "bytes"),
    (Decimal, "decimal"),
    (dt.date, "date"),
    (dt.time, "date"),
    (Instant, "date"),
    (Struct, "struct"),
    (Mapping, "map"),
    (list, "array"),
    (tuple, "array"),
]
_KINDS_OF_SCHEMAS = {"int64": (Type.INT8, Type.INT16, Type.INT32), "float64": (Type.FLOAT32,)}
_KIND_OF_SCHEMA = {Type.FLOAT32: "float32", Type.FLOAT64: "float64"}


def _write_typed(schema: Schema | None, value: Any) -> Json:
    if value is None:
        return None
    kind = next((kind for type_, kind in _KINDS if isinstance(value, type_)), "object")
    if schema is not None and schema.type in _KINDS_OF_SCHEMAS.get(kind, ()):
        kind = _KIND_OF_SCHEMA.get(schema.type, schema.type.value)
    if kind == "struct":
        pairs = ((field, value.get_without_default(field.name)) for field in value.schema.fields)
        return {"t": kind, "v": [[field.name, _write_typed(field.schema, item)] for field, item in pairs]}
    keys = schema.key_schema if schema is not None else None
    inner = schema.value_schema if schema is not None else None
    if kind == "map":
        return {"t": kind, "v": [[_write_typed(keys, key), _write_typed(inner, item)] for key, item in value.items()]}
    if kind == "array":
        return {"t": kind, "v": [_write_typed(inner, item) for item in value]}
    if kind == "date":
        return {"t": kind, "v": _millis(value)}
    return {"t": kind, "v": str(value) if kind in ("object", "biginteger") else write_payload(None, value)}
