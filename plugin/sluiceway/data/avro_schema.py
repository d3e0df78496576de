"""Converts Connect schemas to Avro schemas, with the names and ``connect.*`` properties of Confluent's AvroConverter. No I/O.

Attributes that Avro does not have become properties: ``connect.doc``, ``connect.version``, ``connect.parameters``,
``connect.default``, ``connect.name`` and ``connect.type`` (int8, int16). An optional schema becomes a union with null. A map
with keys other than required strings becomes an array of ``MapEntry`` records. A struct without a name becomes
``ConnectDefault``. Two different structs of that name are invalid in one schema, so name nested structs; in files, later ones
get a number (``FILES``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sluiceway.data import Schema, Type
from sluiceway.data.logical import DATE, DECIMAL, FROM_LOGICAL, SCALE, TIME, TIMESTAMP
from sluiceway.data.schema_names import scrub, split_name
from sluiceway.errors import DataError
from sluiceway.java.numbers import whole_number

NAMESPACE = "io.confluent.connect.avro"
DEFAULT_NAME = "ConnectDefault"
UNION = f"{NAMESPACE}.Union"
ENUM = f"{NAMESPACE}.Enum"
ANYTHING = f"{NAMESPACE}.Anything"
MAP_ENTRY = "MapEntry"
KEY, VALUE = "key", "value"
RECORD_DOC = f"{NAMESPACE}.record.doc"
FIELD_DOC = f"{NAMESPACE}.field.doc."
FIELD_DEFAULT = f"{NAMESPACE}.field.default"
ENUM_DOC = f"{NAMESPACE}.enum.doc."
ENUM_DEFAULT = f"{NAMESPACE}.enum.default."
PRECISION = "connect.decimal.precision"
DEFAULT_PRECISION = 64
FIXED_SIZE = "connect.fixed.size"

Avro = str | dict[str, Any] | list[Any]
"""An Avro schema as JSON."""

_PRIMITIVES = {
    Type.INT8: "int",
    Type.INT16: "int",
    Type.INT32: "int",
    Type.INT64: "long",
    Type.FLOAT32: "float",
    Type.FLOAT64: "double",
    Type.BOOLEAN: "boolean",
    Type.STRING: "string",
    Type.BYTES: "bytes",
}
_NARROW = {Type.INT8: "int8", Type.INT16: "int16"}
_LOGICAL = {DATE: "date", TIME: "time-millis", TIMESTAMP: "timestamp-millis"}


def _optional(*types: Any) -> list[Any]:
    return ["null", *types]


ANYTHING_SCHEMA: Avro = {
    "type": "record",
    "name": "Anything",
    "namespace": NAMESPACE,
    "fields": [
        {"name": "array", "type": _optional({"type": "array", "items": ANYTHING}), "default": None},
        *(
            {"name": name, "type": _optional(name), "default": None}
            for name in ("boolean", "bytes", "double", "float", "int", "long", "string")
        ),
        {
            "name": "map",
            "default": None,
            "type": _optional(
                {
                    "type": "array",
                    "items": {
                        "type": "record",
                        "name": MAP_ENTRY,
                        "namespace": NAMESPACE,
                        "fields": [{"name": KEY, "type": ANYTHING}, {"name": VALUE, "type": ANYTHING}],
                    },
                }
            ),
        },
    ],
}
"""The schema of schemaless values: a record in which only the field of the value's type is set."""


@dataclass(frozen=True, slots=True)
class AvroOptions:
    """The converter's options for mapping schemas; files have two more.

    Attributes:
        unions: whether a struct that stands for a union of several types becomes one, instead of a record.
        numbered: whether a type gets a number if another one has its name, instead of being refused.
    """

    enhanced: bool = False
    meta_data: bool = True
    scrub: bool = False
    optional_map_keys: bool = False
    keep_nulls: bool = False
    unions: bool = True
    numbered: bool = False

    def plain(self, name: str) -> str:
        """Return the Avro name of a field."""
        return scrub(name, underscore_may_start=True) if self.scrub else name

    def full(self, name: str) -> tuple[str | None, str]:
        """Return the Avro namespace and name of a schema."""
        namespace, last = split_name(name)
        if namespace is not None:
            namespace = ".".join(self.plain(part) for part in namespace.split("."))
        return namespace, self.plain(last)


FILES = AvroOptions(unions=False, numbered=True)
"""The default options of Avro files, which take every schema."""


def has_string_keys(schema: Schema, options: AvroOptions) -> bool:
    """Return True if a map schema becomes an Avro map, False if it becomes an array of entries."""
    keys = schema.key_schema
    return keys is not None and keys.type is Type.STRING and (options.optional_map_keys or not keys.optional)


def has_union(schema: Schema) -> bool:
    """Return True if a schema contains a union of several types."""
    parts = [field.schema for field in schema.fields] + [
        part for part in (schema.key_schema, schema.value_schema) if part is not None
    ]
    return (schema.type is Type.STRUCT and schema.name == UNION) or any(map(has_union, parts))


def to_avro(schema: Schema | None, options: AvroOptions) -> Avro:
    """Return the Avro schema. Raises DataError for two different types with the same name."""
    return ANYTHING_SCHEMA if schema is None else _Names(numbered=options.numbered).folded(_expand(schema, options), "")


def full_name(node: Mapping[str, Any], namespace: str = "") -> str:
    """Return the full name of a named type, whose definition stands within a namespace."""
    name, own = str(node["name"]), node.get("namespace", namespace)
    return name if "." in name or not own else f"{own}.{name}"


def _expand(schema: Schema, options: AvroOptions, *, member: bool = False) -> Any:
    """Return the schema with a full definition at each use of a named type. A union's ``member`` gets no null of its own."""
    if options.unions and schema.name == UNION and schema.type is Type.STRUCT:
        branches = [_expand(field.schema, options, member=True) for field in schema.fields]
        return _optional(*branches) if schema.optional else branches
    node = _base(schema, options)
    if options.meta_data:
        node |= _meta_data(schema)
    node |= {key: text for key, text in schema.parameters.items() if key.startswith("avro")}
    node |= _logical(schema)
    compact = node["type"] if len(node) == 1 else node
    if member or not schema.optional:
        return compact
    return [compact, "null"] if schema.default is not None else _optional(compact)


def _base(schema: Schema, options: AvroOptions) -> dict[str, Any]:
    if schema.type is Type.STRUCT:
        return _record(schema, options)
    if schema.type is Type.ARRAY:
        return {"type": "array", "items": _inner(schema.value_schema, options)}
    if schema.type is Type.MAP:
        return _map(schema, options)
    if schema.type is Type.STRING and options.enhanced and ENUM in schema.parameters:
        return _enum(schema, options)
    size = fixed_size(schema)
    node: dict[str, Any] = {"type": _PRIMITIVES[schema.type]} if size is None else _fixed(schema, size, options)
    if schema.name == DECIMAL:
        node |= {"scale": _scale(schema), "precision": _precision(schema)}
    return node


def _inner(schema: Schema | None, options: AvroOptions) -> Any:
    if schema is None:
        raise DataError("An array or map schema has no schema for its items, which Avro requires.")
    return _expand(schema, options)


def _record(schema: Schema, options: AvroOptions) -> dict[str, Any]:
    namespace, name = options.full(schema.name) if schema.name else (NAMESPACE, DEFAULT_NAME)
    node: dict[str, Any] = {"type": "record", "name": name, "namespace": namespace or ""}
    if RECORD_DOC in schema.parameters:
        node["doc"] = schema.parameters[RECORD_DOC]
    node["fields"] = [
        _field(options.plain(field.name), field.schema, schema.parameters.get(FIELD_DOC + field.name), options)
        for field in schema.fields
    ]
    return node


def _field(name: str, schema: Schema, doc: str | None, options: AvroOptions) -> dict[str, Any]:
    node: dict[str, Any] = {"name": name, "type": _expand(schema, options)}
    if doc is not None:
        node["doc"] = doc
    if schema.default is not None:
        node["default"] = default_to_json(schema, schema.default, options)
    elif schema.optional:
        node["default"] = None
    return node


def _map(schema: Schema, options: AvroOptions) -> dict[str, Any]:
    if schema.key_schema is None or schema.value_schema is None:
        raise DataError("A map schema must have schemas for its keys and values.")
    if has_string_keys(schema, options):
        return {"type": "map", "values": _expand(schema.value_schema, options)}
    namespace, name = options.full(schema.name) if schema.name else (NAMESPACE, MAP_ENTRY)
    entry: dict[str, Any] = {
        "type": "record",
        "name": name,
        "namespace": namespace or "",
        "fields": [_field(KEY, schema.key_schema, None, options), _field(VALUE, schema.value_schema, None, options)],
    }
    if schema.name:
        entry["connect.internal.type"] = MAP_ENTRY
    return {"type": "array", "items": entry}


def _enum(schema: Schema, options: AvroOptions) -> dict[str, Any]:
    parameters = schema.parameters
    namespace, name = options.full(parameters[ENUM])
    node: dict[str, Any] = {"type": "enum", "name": name, "namespace": namespace or ""}
    if ENUM_DOC + name in parameters:
        node["doc"] = parameters[ENUM_DOC + name]
    node["symbols"] = enum_symbols(schema)
    if ENUM_DEFAULT + name in parameters:
        node["default"] = parameters[ENUM_DEFAULT + name]
    return node


def fixed_size(schema: Schema) -> int | None:
    """Return the number of bytes of each value of a fixed type, None for other types. Raises DataError for an invalid size."""
    given = schema.parameters.get(FIXED_SIZE) if schema.type is Type.BYTES else None
    size = None if given is None else whole_number(given)
    if given is not None and size is None:
        raise DataError(f"Invalid fixed schema: {FIXED_SIZE} is not a number.")
    return size


def _fixed(schema: Schema, size: int, options: AvroOptions) -> dict[str, Any]:
    """Return a fixed type. Decimals, which have no name of their own, get one for each size, precision, and scale."""
    if schema.name == DECIMAL:
        namespace, name = NAMESPACE, f"Decimal_{size}_{_precision(schema)}_{_scale(schema)}"
    else:
        own, name = options.full(schema.name) if schema.name else (NAMESPACE, f"Fixed_{size}")
        namespace = own or ""
    return {"type": "fixed", "name": name, "namespace": namespace, "size": size}


def filled(number: bytes, size: int) -> bytes:
    """Return a big-endian two's complement with ``size`` bytes; longer numbers stay as they are, and are refused later."""
    return number.rjust(size, b"\xff" if number and number[0] >= 0x80 else b"\x00")


def enum_symbols(schema: Schema) -> list[str]:
    """Return the symbols of an enum."""
    return [symbol for key, symbol in schema.parameters.items() if key.startswith(f"{ENUM}.")]


def _meta_data(schema: Schema) -> dict[str, Any]:
    parameters = {key: text for key, text in schema.parameters.items() if key != FIELD_DEFAULT}
    found: dict[str, Any] = {}
    if schema.doc is not None:
        found["connect.doc"] = schema.doc
    if schema.version is not None:
        found["connect.version"] = schema.version
    if parameters:
        found["connect.parameters"] = parameters
    if schema.default is not None and FIELD_DEFAULT not in schema.parameters:
        found["connect.default"] = default_to_json(schema, schema.default, AvroOptions())
    if schema.name is not None:
        found["connect.name"] = schema.name
    if schema.type in _NARROW:
        found["connect.type"] = _NARROW[schema.type]
    return found


def _logical(schema: Schema) -> dict[str, Any]:
    if schema.name in _LOGICAL:
        return {"logicalType": _LOGICAL[schema.name]}
    return {"logicalType": "decimal"} if schema.name == DECIMAL else {}


def _scale(schema: Schema) -> int:
    try:
        return int(schema.parameters[SCALE])
    except (KeyError, ValueError):
        raise DataError("Invalid Decimal schema: scale parameter not found.") from None


def _precision(schema: Schema) -> int:
    try:
        return int(schema.parameters.get(PRECISION, DEFAULT_PRECISION))
    except ValueError:
        raise DataError(f"Invalid Decimal schema: {PRECISION} is not a number.") from None


def default_to_json(schema: Schema, value: Any, options: AvroOptions) -> Any:
    """Return a default as Avro's JSON: bytes as ISO 8859-1 text, logical types as numbers."""
    if value is None:
        return None
    if schema.name in FROM_LOGICAL:
        value = FROM_LOGICAL[schema.name](schema, value)
    if schema.type is Type.BYTES:
        return bytes(value).decode("iso-8859-1")
    if schema.type is Type.ARRAY and schema.value_schema is not None:
        return [default_to_json(schema.value_schema, item, options) for item in value]
    if schema.type is Type.MAP and schema.key_schema is not None and schema.value_schema is not None:
        pairs = [
            (default_to_json(schema.key_schema, key, options), default_to_json(schema.value_schema, item, options))
            for key, item in value.items()
        ]
        return dict(pairs) if has_string_keys(schema, options) else [list(pair) for pair in pairs]
    if schema.type is Type.STRUCT:
        return {options.plain(field.name): default_to_json(field.schema, value[field.name], options) for field in schema.fields}
    if isinstance(value, float) and not math.isfinite(value):
        raise DataError(f"The default {value} of a {schema.type.name} schema cannot be written in an Avro schema.")
    return value


class _Names:
    """Replaces later definitions of a named type by its name, and removes namespaces that do not change."""

    def __init__(self, *, numbered: bool) -> None:
        self._numbered = numbered
        self._known: dict[str, Any] = {}

    def folded(self, node: Any, namespace: str) -> Any:
        if isinstance(node, list):
            return [self.folded(branch, namespace) for branch in node]
        if not isinstance(node, dict):
            return node
        node = dict(node)
        if "name" in node:
            if self._numbered and not node["namespace"]:
                node["namespace"] = namespace  # readers of files may not find a type outside of all namespaces from within one
            node = self._named(node)
            name = full_name(node)
            if name in self._known:
                return name
            self._known[name] = dict(node)
            inner = node["namespace"]
            if inner == namespace:
                del node["namespace"]
            namespace = inner
        if "fields" in node:
            node["fields"] = [field | {"type": self.folded(field["type"], namespace)} for field in node["fields"]]
        for part in ("items", "values"):
            if part in node:
                node[part] = self.folded(node[part], namespace)
        return node

    def _named(self, node: dict[str, Any]) -> dict[str, Any]:
        """Return a named type under a name that no other type has."""
        found, number = node, 1
        while self._known.get(full_name(found), found) != found:
            if not self._numbered:
                raise DataError(f"Can't redefine: {full_name(node)}. Give nested structs that differ different schema names.")
            number += 1
            found = {**node, "name": f"{node['name']}{number}"}
        return found
