"""Converts Avro schemas to Connect schemas, like Confluent's AvroConverter. No I/O.

Enums become strings, with their symbols in parameters. Unions other than ``null`` and one type become structs named
``io.confluent.connect.avro.Union`` with a field for each branch. Recursive schemas are refused, because Connect schemas are
immutable here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from sluiceway.converters.registry.avro_parse import DEFINITIONS
from sluiceway.converters.registry.limits import Budget
from sluiceway.data import STRING_SCHEMA, Schema, Struct, Type
from sluiceway.data.avro_schema import (
    DEFAULT_NAME,
    DEFAULT_PRECISION,
    ENUM,
    ENUM_DEFAULT,
    ENUM_DOC,
    FIELD_DEFAULT,
    FIELD_DOC,
    FIXED_SIZE,
    KEY,
    MAP_ENTRY,
    NAMESPACE,
    PRECISION,
    RECORD_DOC,
    UNION,
    VALUE,
    AvroOptions,
    full_name,
)
from sluiceway.data.logical import SCALE, TO_LOGICAL, date_schema, decimal_schema, time_schema, timestamp_schema
from sluiceway.errors import DataError

_PRIMITIVES = {
    "int": Type.INT32,
    "long": Type.INT64,
    "float": Type.FLOAT32,
    "double": Type.FLOAT64,
    "boolean": Type.BOOLEAN,
    "string": Type.STRING,
    "bytes": Type.BYTES,
    "fixed": Type.BYTES,
}
_NARROW = {"int8": Type.INT8, "int16": Type.INT16}
_LOGICAL = {
    ("int", "date"): date_schema(),
    ("int", "time-millis"): time_schema(),
    ("long", "timestamp-millis"): timestamp_schema(),
}
_DEFAULT_FULL_NAME = f"{NAMESPACE}.{DEFAULT_NAME}"
_NO_DEFAULT = object()


class Resolved(NamedTuple):
    """An Avro type with resolved names: ``node`` is always an object, ``name`` the full name of a named type."""

    kind: str
    node: Mapping[str, Any]
    name: str | None
    namespace: str


class AvroTypes:
    """The named types of a schema and of its referenced schemas."""

    def __init__(self) -> None:
        self._named: dict[str, Resolved] = {}

    def add(self, node: Any, namespace: str = "") -> None:
        """Add all named types in a schema. Schemas that reference each other may be added in any order."""
        if isinstance(node, list):
            for branch in node:
                self.add(branch, namespace)
        elif isinstance(node, dict):
            kind = node.get("type")
            if kind in DEFINITIONS:
                name = full_name(node, namespace)
                namespace = name.rpartition(".")[0]
                self._named.setdefault(name, Resolved("record" if kind == "error" else str(kind), node, name, namespace))
                for field in node.get("fields", ()):
                    self.add(field["type"], namespace)
            elif kind in ("array", "map"):
                self.add(node.get("items", node.get("values")), namespace)
            else:
                self.add(kind, namespace)

    def resolve(self, node: Any, namespace: str = "") -> Resolved:
        """Return the type of a schema, with names resolved. Raises DataError for an undefined name."""
        if isinstance(node, list):
            return Resolved("union", {"branches": node}, None, namespace)
        if isinstance(node, str):
            if node in _PRIMITIVES or node == "null":
                return Resolved(node, {}, None, namespace)
            found = self._named.get(node if "." in node or not namespace else f"{namespace}.{node}") or self._named.get(node)
            if found is None:
                raise DataError(
                    f"The Avro schema uses the type {node} without defining it. Add a schema reference to it in the registry."
                )
            return found
        kind = node.get("type")
        if isinstance(kind, (dict, list)):
            return self.resolve(kind, namespace)
        if kind in DEFINITIONS:
            return self._named[full_name(node, namespace)]
        if kind in ("array", "map", "null") or kind in _PRIMITIVES:
            return Resolved(str(kind), node, None, namespace)
        return self.resolve(kind, namespace)


def only_branch(types: AvroTypes, resolved: Resolved) -> Any:
    """Return the branch of a union of null and one type, which makes the type optional; None for any other union."""
    branches = resolved.node["branches"]
    others = [branch for branch in branches if types.resolve(branch, resolved.namespace).kind != "null"]
    return others[0] if len(branches) == 2 and len(others) == 1 else None


def branch_name(types: AvroTypes, branch: Any, namespace: str, options: AvroOptions) -> str:
    """Return the name of the struct field for a branch of a union."""
    resolved = types.resolve(branch, namespace)
    if resolved.kind in ("record", "enum", "fixed") and resolved.name is not None:
        return resolved.name if options.enhanced else resolved.name.rpartition(".")[2]
    return resolved.kind


def is_map_entry(items: Resolved) -> bool:
    """Return True if an array of these records represents a map."""
    return items.kind == "record" and (
        items.name == f"{NAMESPACE}.{MAP_ENTRY}" or items.node.get("connect.internal.type") == MAP_ENTRY
    )


def entry_schemas(items: Resolved) -> tuple[Any, Any]:
    """Return the schemas of the key and value of a map entry."""
    fields = {field["name"]: field["type"] for field in items.node["fields"]}
    if fields.keys() != {KEY, VALUE}:
        raise DataError("Found map encoded as array of key-value pairs, but array elements do not match the expected format.")
    return fields[KEY], fields[VALUE]


class ToConnect:
    """Converts the types of one Avro schema to Connect schemas."""

    def __init__(self, types: AvroTypes, options: AvroOptions) -> None:
        self._types = types
        self._options = options
        self._open: list[str] = []
        self._budget = Budget()

    def schema(
        self, node: Any, namespace: str = "", *, optional: bool = False, default: Any = _NO_DEFAULT, version: int | None = None
    ) -> Schema:
        """Return the Connect schema; ``default`` is the default of the Avro field, ``version`` the version in the registry."""
        self._budget.spend()
        resolved = self._types.resolve(node, namespace)
        if resolved.kind == "union":
            branch = only_branch(self._types, resolved)
            if branch is not None:
                return self.schema(branch, resolved.namespace, optional=True)
            return self._union(resolved, version)
        base = self._base(resolved)
        parts: dict[str, Any] = {
            "name": base.name,
            "version": base.version,
            "parameters": dict(base.parameters),
            "key_schema": base.key_schema,
            "value_schema": base.value_schema,
            "fields": [(field.name, field.schema) for field in base.fields],
            "optional": optional,
        }
        self._annotate(resolved, parts, version)
        given = resolved.node.get("connect.default", _NO_DEFAULT)
        if default is not _NO_DEFAULT:
            if given is _NO_DEFAULT:
                parts["parameters"][FIELD_DEFAULT] = "true"
            given = default
        built = Schema(base.type, **parts)
        if given is _NO_DEFAULT or given is None:
            return built
        return Schema(base.type, **parts, default=self._default(built, node, namespace, given))

    def _annotate(self, resolved: Resolved, parts: dict[str, Any], version: int | None) -> None:
        node = resolved.node
        if self._options.meta_data:
            parts["doc"] = node.get("connect.doc")
            given = node.get("connect.parameters", {})
            if not isinstance(given, dict) or not all(isinstance(text, str) for text in given.values()):
                raise DataError(f"Expected schema parameter values to be strings but found: {given}")
            parts["parameters"] |= given
        parts["parameters"] |= {key: str(text) for key, text in node.items() if key.startswith("avro")}
        own = node.get("connect.version", version)
        if own is not None and not isinstance(own, int):
            raise DataError(f"Invalid Connect version found: {own}")
        if own is not None and parts["version"] is not None and own != parts["version"]:
            raise DataError(
                f"Mismatched versions: version already added to SchemaBuilder ({parts['version']}) differs from version in "
                f"source schema ({own})"
            )
        parts["version"] = own if own is not None else parts["version"]
        is_named = resolved.kind in ("record", "enum") or (resolved.kind == "fixed" and parts["name"] is None)
        name = node.get("connect.name", resolved.name if is_named else None)
        if name is not None and name != _DEFAULT_FULL_NAME:
            if parts["name"] is not None and parts["name"] != name:
                raise DataError(
                    f"Mismatched names: name already added to SchemaBuilder ({parts['name']}) differs from name in source "
                    f"schema ({name})"
                )
            parts["name"] = name

    def _union(self, resolved: Resolved, version: int | None) -> Schema:
        fields: dict[str, Schema] = {}
        optional = False
        for branch in resolved.node["branches"]:
            name = branch_name(self._types, branch, resolved.namespace, self._options)
            if name == "null":
                optional = True
            elif name in fields:
                raise DataError("Multiple union schemas map to the Connect union field name")
            else:
                fields[name] = self.schema(branch, resolved.namespace, optional=True)
        return Schema(Type.STRUCT, name=UNION, optional=optional, version=version, fields=fields.items())

    def _base(self, resolved: Resolved) -> Schema:
        kind, node, namespace = resolved.kind, resolved.node, resolved.namespace
        if kind == "record":
            return self._record(resolved)
        if kind == "array":
            items = self._types.resolve(node["items"], namespace)
            if is_map_entry(items):
                keys, values = entry_schemas(items)
                return Schema.map(self.schema(keys, items.namespace), self.schema(values, items.namespace))
            return Schema.array(self.schema(node["items"], namespace))
        if kind == "map":
            return Schema.map(STRING_SCHEMA, self.schema(node["values"], namespace))
        if kind == "enum":
            return self._enum(resolved)
        if kind == "null":
            raise DataError("Standalone null schemas are not supported by this converter")
        base = _primitive(kind, node)
        return base if kind != "fixed" else base.replace(parameters={**base.parameters, FIXED_SIZE: str(node["size"])})

    def _record(self, resolved: Resolved) -> Schema:
        name = str(resolved.name)
        if name in self._open:
            raise DataError(f"The Avro record {name} contains itself; recursive schemas are not supported.")
        self._open.append(name)
        parameters = {}
        if self._options.meta_data:
            if "doc" in resolved.node:
                parameters[RECORD_DOC] = resolved.node["doc"]
            parameters |= {FIELD_DOC + field["name"]: field["doc"] for field in resolved.node["fields"] if "doc" in field}
        fields = [
            (field["name"], self.schema(field["type"], resolved.namespace, default=field.get("default", _NO_DEFAULT)))
            for field in resolved.node["fields"]
        ]
        self._open.pop()
        return Schema(Type.STRUCT, fields=fields, parameters=parameters)

    def _enum(self, resolved: Resolved) -> Schema:
        node, short = resolved.node, str(resolved.name).rpartition(".")[2]
        parameters = {}
        if self._options.meta_data:
            if "doc" in node:
                parameters[ENUM_DOC + short] = node["doc"]
            if "default" in node:
                parameters[ENUM_DEFAULT + short] = node["default"]
        parameters[ENUM] = str(resolved.name)
        parameters |= {f"{ENUM}.{symbol}": symbol for symbol in node["symbols"]}
        return Schema(Type.STRING, parameters=parameters)

    def _default(self, schema: Schema, node: Any, namespace: str, value: Any) -> Any:
        """Return a JSON default as a value of the schema."""
        if value is None:
            return None
        resolved = self._types.resolve(node, namespace)
        kind, inner = resolved.kind, resolved.namespace
        if kind in ("bytes", "fixed"):
            value = str(value).encode("iso-8859-1")
        elif kind == "array" and schema.type is Type.MAP:
            keys, values = entry_schemas(items := self._types.resolve(resolved.node["items"], inner))
            assert schema.key_schema is not None and schema.value_schema is not None  # noqa: S101, PT018 (``schema`` made it a map)
            return {
                self._default(schema.key_schema, keys, items.namespace, key): self._default(
                    schema.value_schema, values, items.namespace, item
                )
                for key, item in value
            }
        elif kind == "array" and schema.value_schema is not None:
            return [self._default(schema.value_schema, resolved.node["items"], inner, item) for item in value]
        elif kind == "map" and schema.value_schema is not None:
            return {key: self._default(schema.value_schema, resolved.node["values"], inner, item) for key, item in value.items()}
        elif kind == "record":
            types = {field["name"]: field["type"] for field in resolved.node["fields"]}
            return Struct(
                schema,
                {
                    field.name: self._default(field.schema, types[field.name], inner, value.get(field.name))
                    for field in schema.fields
                },
            )
        elif kind == "union":
            return self._union_default(schema, resolved, value)
        elif kind in ("float", "double"):
            value = float(value)
        return TO_LOGICAL[schema.name](schema, value) if schema.name in TO_LOGICAL else value

    def _union_default(self, schema: Schema, resolved: Resolved, value: Any) -> Any:
        branch = only_branch(self._types, resolved)
        if branch is not None:
            return self._default(schema, branch, resolved.namespace, value)
        first = resolved.node["branches"][0]  # Avro: the default of a union has the type of its first branch
        field = schema.field(branch_name(self._types, first, resolved.namespace, self._options))
        if field is None:
            return None
        return Struct(schema, {field.name: self._default(field.schema, first, resolved.namespace, value)})


def _primitive(kind: str, node: Mapping[str, Any]) -> Schema:
    logical, narrow = node.get("logicalType"), node.get("connect.type")
    if logical == "decimal" and kind in ("bytes", "fixed"):
        scale, precision = node.get("scale", 0), node.get("precision")
        if not isinstance(scale, int):
            raise DataError("scale must be specified and must be a number.")
        if precision in (None, DEFAULT_PRECISION):
            return decimal_schema(scale)
        return Schema(
            Type.BYTES, name=decimal_schema(scale).name, version=1, parameters={SCALE: str(scale), PRECISION: str(precision)}
        )
    if (kind, logical) in _LOGICAL:
        return _LOGICAL[kind, str(logical)]
    if kind == "int" and logical is None and narrow is not None:
        if narrow not in _NARROW:
            raise DataError("Connect type annotation for Avro int field is null")
        return Schema(_NARROW[narrow])
    return Schema(_PRIMITIVES[kind])
