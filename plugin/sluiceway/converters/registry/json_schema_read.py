"""Converts JSON Schemas to Connect schemas, and JSON to values, like Confluent's JsonSchemaConverter. No I/O.

Supported are types, lists of types, ``enum``, ``const``, ``oneOf``, ``anyOf``, and ``allOf``, and ``$ref`` into the schema itself
and into registered references. ``oneOf`` null and one type makes the type optional; any other ``oneOf`` becomes a struct
``io.confluent.connect.json.OneOf``, unless it is combined with properties: then all properties become one struct. Conditions
(``if``) do not change the schema. Recursive schemas are refused.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from sluiceway.converters.registry.json_schema_write import ENUM, ENUM_PREFIX, KEY, ONE_OF, VALUE, JsonOptions, has_string_keys
from sluiceway.converters.registry.limits import Budget
from sluiceway.data import STRING_SCHEMA, Schema, Struct, Type
from sluiceway.data.logical import DECIMAL, TO_LOGICAL
from sluiceway.data.null_values import null_value
from sluiceway.data.schema import INTEGER_BITS
from sluiceway.errors import DataError
from sluiceway.java.numbers import decimal_to_integer, to_float32, wrap

Convert = Callable[[Any], Any]

_NUMBERS = {
    "int8": Type.INT8,
    "int16": Type.INT16,
    "int32": Type.INT32,
    "int64": Type.INT64,
    "float32": Type.FLOAT32,
    "float64": Type.FLOAT64,
    "bytes": Type.BYTES,
}
_FLOATS = (Type.FLOAT32, Type.FLOAT64)
_NULL = {"type": "null"}
_BRANCHES = ("oneOf", "anyOf")


class _Part(NamedTuple):
    """A part of a JSON Schema, and the document in which its references are looked up."""

    node: Any
    document: Any


class _Property(NamedTuple):
    """A property of an object; ``required`` if one of the schemas that it is in says so."""

    part: _Part
    required: bool


class ToConnect:
    """Converts a JSON Schema document to a Connect schema."""

    def __init__(self, document: Any, references: Mapping[str, Any], options: JsonOptions) -> None:
        self._document = document
        self._references = references
        self._options = options
        self._open: list[str] = []
        self._budget = Budget()

    def schema(self, node: Any = None, *, version: int | None = None, optional: bool = False) -> Schema:
        """Return the Connect schema of a part of the document (None: the whole document)."""
        self._budget.spend()
        node = self._document if node is None else node
        if not isinstance(node, Mapping):
            raise DataError(f"Unsupported schema type: {node!r} does not define a type.")
        if "$ref" in node:
            return self._referred(str(node["$ref"]), version, optional)
        node = _without_type_list(node)
        if "allOf" in node or (node.keys() & _BRANCHES and _is_object(node)):
            return self._all_of(node, version, optional)
        branches = node.get("oneOf", node.get("anyOf"))
        if branches is not None:
            others = [branch for branch in branches if branch != _NULL and branch.get("type") != "null"]
            if len(branches) == 2 and len(others) == 1:
                return self.schema(others[0], version=version, optional=True)
            fields = {f"{ONE_OF}.field.{index}": self.schema(branch, optional=True) for index, branch in enumerate(others)}
            optional = optional or len(others) < len(branches)
            return self._build(node, Type.STRUCT, version, optional, name=ONE_OF, fields=fields.items())
        return self._typed(node, version, optional)

    def _referred(self, reference: str, version: int | None, optional: bool) -> Schema:
        if reference in self._open:
            raise DataError(f"The JSON Schema contains itself by $ref {reference}; recursive schemas are not supported.")
        self._open.append(reference)
        part = self._target(reference)
        try:
            return self._within(part, version=version, optional=optional)
        finally:
            self._open.pop()

    def _within(self, part: _Part, *, version: int | None = None, optional: bool = False) -> Schema:
        """Return the Connect schema of a part of a document, in which its references are looked up."""
        outer, self._document = self._document, part.document
        try:
            return self.schema(part.node, version=version, optional=optional)
        finally:
            self._document = outer

    def _target(self, reference: str) -> _Part:
        """Return what a ``$ref`` refers to. Raises DataError."""
        base, _, pointer = reference.partition("#")
        node, document = self._document, self._document
        if base:
            if base not in self._references:
                raise DataError(f"The JSON Schema uses {base}, which is not among its references in the registry.")
            document = node = self._references[base]
        for part in pointer.split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(node, Mapping) or name not in node:
                raise DataError(f"The JSON Schema's $ref {reference} does not exist.")
            node = node[name]
        return _Part(node, document)

    def _all_of(self, node: Mapping[str, Any], version: int | None, optional: bool) -> Schema:
        """Return the schema of values that match all parts of a schema: a struct of all their properties, if they have any.

        Otherwise a part with branches decides, or the parts are one type and its restrictions.
        """
        found: dict[str, _Property] = {}
        self._collect(_Part(node, self._document), found, set())
        if found:
            by_use = self._options.optional_unless_required
            fields = [(name, self._within(each.part, optional=by_use and not each.required)) for name, each in found.items()]
            return self._build(node, Type.STRUCT, version, optional, fields=fields)
        parts = [self._target(part["$ref"]).node if "$ref" in part else part for part in node.get("allOf", ())]
        branches = {key: node[key] for key in _BRANCHES if key in node}
        combined = [part for part in (branches, *parts) if part.keys() & {*_BRANCHES, "allOf"}]
        if combined:
            return self.schema(combined[0], version=version, optional=optional)
        merged: dict[str, Any] = {key: part for key, part in node.items() if key != "allOf"}
        for part in parts:
            merged = {**part, **merged}
        return self.schema(merged, version=version, optional=optional)

    def _collect(self, part: _Part, found: dict[str, _Property], seen: set[str]) -> None:
        """Add the properties of a part and of all that it is combined with. Conditions (``if``) restrict values only."""
        node = part.node
        if not isinstance(node, Mapping):
            return
        outer, self._document = self._document, part.document
        try:
            reference = str(node.get("$ref", ""))
            if reference and reference not in seen:
                self._collect(self._target(reference), found, {*seen, reference})
            for name, inner in node.get("properties", {}).items():
                known = found.get(name)
                required = name in node.get("required", ())
                found[name] = _Property(_Part(inner, part.document), required) if known is None else known
            for name in node.get("required", ()):
                if name in found:
                    found[name] = _Property(found[name].part, required=True)
            for key in ("allOf", *_BRANCHES):
                for each in node.get(key, ()):
                    self._collect(_Part(each, part.document), found, seen)
        finally:
            self._document = outer

    def _typed(self, node: Mapping[str, Any], version: int | None, optional: bool) -> Schema:
        kind, connect_type = node.get("type"), node.get("connect.type")
        if "enum" in node and kind in (None, "string"):
            parameters = {ENUM: ""} | {f"{ENUM_PREFIX}{symbol}": str(symbol) for symbol in node["enum"]}
            return self._build(node, Type.STRING, version, optional, parameters=parameters)
        if kind == "object" or (kind is None and "properties" in node):
            return self._object(node, version, optional)
        if kind == "array":
            return self._array(node, version, optional)
        if kind == "boolean":
            return self._build(node, Type.BOOLEAN, version, optional)
        if kind == "string":
            return self._build(node, Type.BYTES if connect_type == "bytes" else Type.STRING, version, optional)
        if kind in ("integer", "number"):
            default = Type.INT64 if kind == "integer" else Type.FLOAT64
            if connect_type is not None and connect_type not in _NUMBERS:
                raise DataError(f"Unsupported type {connect_type}")
            return self._build(node, _NUMBERS[connect_type] if connect_type else default, version, optional)
        if "const" in node:
            return self._build(node, _type_of(node["const"]), version, optional)
        raise DataError(f"Unsupported schema type {kind}: give each part of the JSON Schema a type.")

    def _object(self, node: Mapping[str, Any], version: int | None, optional: bool) -> Schema:
        if node.get("connect.type") == "map":
            values = self.schema(node.get("additionalProperties", True))
            return self._build(node, Type.MAP, version, optional, key_schema=STRING_SCHEMA, value_schema=values)
        required = node.get("required", ())
        indexed = [
            (part.get("connect.index", index) if isinstance(part, Mapping) else index, name, part)
            for index, (name, part) in enumerate(node.get("properties", {}).items())
        ]
        fields = [
            (name, self.schema(part, optional=self._options.optional_unless_required and name not in required))
            for _, name, part in sorted(indexed, key=lambda each: each[0])
        ]
        return self._build(node, Type.STRUCT, version, optional, fields=fields)

    def _array(self, node: Mapping[str, Any], version: int | None, optional: bool) -> Schema:
        items = node.get("items")
        if not isinstance(items, Mapping):
            raise DataError("Array schema did not specify the items type")
        if node.get("connect.type") == "map" and items.get("type") == "object":
            parts = items["properties"]
            return self._build(
                node, Type.MAP, version, optional, key_schema=self.schema(parts[KEY]), value_schema=self.schema(parts[VALUE])
            )
        return self._build(node, Type.ARRAY, version, optional, value_schema=self.schema(items))

    def _build(self, node: Mapping[str, Any], type_: Type, version: int | None, optional: bool, **parts: Any) -> Schema:
        parts["name"] = node.get("title", parts.get("name"))
        parts["version"] = node.get("connect.version", version)
        parts["doc"] = node.get("description")
        parts["parameters"] = parts.get("parameters", {}) | node.get("connect.parameters", {})
        built = Schema(type_, optional=optional, **parts)
        if node.get("default") is None:
            return built
        return Schema(type_, optional=optional, default=reader(built)(node["default"]), **parts)


def _without_type_list(node: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a list of types as ``anyOf``."""
    if isinstance(node.get("type"), list):
        rest = {key: part for key, part in node.items() if key != "type"}
        return {"anyOf": [_NULL if kind == "null" else {**rest, "type": kind} for kind in node["type"]]}
    return node


def _is_object(node: Mapping[str, Any]) -> bool:
    return node.get("type") == "object" or "properties" in node


def _type_of(value: Any) -> Type:
    if isinstance(value, bool):
        return Type.BOOLEAN
    if isinstance(value, int):
        return Type.INT64
    return Type.FLOAT64 if isinstance(value, (float, Decimal)) else Type.STRING


def reader(schema: Schema, *, keep_nulls: bool = False) -> Convert:
    """Return the function from JSON to values of a schema. The function raises DataError for an invalid null.

    With ``keep_nulls``, null of an optional schema is null instead of its default.
    """
    convert, optional = _converter(schema, keep_nulls), schema.optional
    default = null_value(schema, replace=not keep_nulls)

    def read(value: Any) -> Any:
        if value is None:
            if default is not None or optional:
                return default
            raise DataError(f"Invalid null value for required {schema.type.name} field")
        return convert(value)

    return read


def _converter(schema: Schema, keep_nulls: bool) -> Convert:
    if schema.name == DECIMAL:
        return lambda value: _decimal(schema, value)
    if schema.name in TO_LOGICAL:
        return _logical(schema)
    if schema.type in INTEGER_BITS:
        bits = INTEGER_BITS[schema.type]
        return lambda value: _integer(value, bits)
    if schema.type in _FLOATS:
        narrow = schema.type is Type.FLOAT32
        return lambda value: to_float32(float(_number(value))) if narrow else float(_number(value))
    if schema.type is Type.STRUCT:
        return _one_of(schema, keep_nulls) if schema.name == ONE_OF else _struct(schema, keep_nulls)
    if schema.type in (Type.ARRAY, Type.MAP):
        return _container(schema, keep_nulls)
    if schema.type is Type.BYTES:
        return _bytes
    return (lambda value: value is True) if schema.type is Type.BOOLEAN else _text


def _number(value: Any) -> Any:
    """Return a number unchanged and 0 for anything else, like Jackson."""
    return value if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool) else 0


def _integer(value: Any, bits: int) -> int:
    number = _number(value)
    return decimal_to_integer(number, bits) if isinstance(number, Decimal) else wrap(int(number), bits)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _bytes(value: Any) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (TypeError, ValueError) as error:
        raise DataError("Invalid bytes field: it is not base64 text.") from error


def _decimal(schema: Schema, value: Any) -> Decimal:
    if isinstance(value, str):
        decimal: Decimal = TO_LOGICAL[DECIMAL](schema, _bytes(value))
        return decimal
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        return value if isinstance(value, Decimal) else Decimal(str(value))
    raise DataError(
        f"Invalid type for Decimal, underlying representation should be numeric or bytes but was {type(value).__name__}"
    )


def _logical(schema: Schema) -> Convert:
    convert, short = TO_LOGICAL[str(schema.name)], str(schema.name).rpartition(".")[2]

    def read(value: Any) -> Any:
        if type(value) is not int:
            kind = "integral" if schema.type is Type.INT64 else "integer"
            raise DataError(
                f"Invalid type for {short}, underlying representation should be {kind} but was {type(value).__name__}"
            )
        return convert(schema, value)

    return read


def _struct(schema: Schema, keep_nulls: bool) -> Convert:
    fields = [
        (field.name, reader(field.schema, keep_nulls=keep_nulls), null_value(field.schema, replace=not keep_nulls))
        for field in schema.fields
    ]

    def read(value: Any) -> Struct:
        if not isinstance(value, dict):
            raise DataError(f"Structs should be encoded as JSON objects, but found {type(value).__name__}")
        # Only an explicit null of a required field is an error, as in Confluent's converter.
        return Struct.of(schema, [convert(value[name]) if name in value else missing for name, convert, missing in fields])

    return read


def _container(schema: Schema, keep_nulls: bool) -> Convert:
    assert schema.value_schema is not None  # noqa: S101 (an array's or map's)
    values = reader(schema.value_schema, keep_nulls=keep_nulls)
    if schema.type is Type.ARRAY:
        return lambda items: [values(item) for item in _expect(items, list, "Arrays should be encoded as JSON arrays")]
    if has_string_keys(schema):
        what = "Maps with string fields should be encoded as JSON objects"
        return lambda pairs: {key: values(value) for key, value in _expect(pairs, dict, what).items()}
    assert schema.key_schema is not None  # noqa: S101 (a map's)
    keys = reader(schema.key_schema, keep_nulls=keep_nulls)
    what = "Maps with non-string fields should be encoded as JSON array of objects"
    return lambda pairs: {keys(pair.get(KEY)): values(pair.get(VALUE)) for pair in _expect(pairs, list, what)}


def _expect(value: Any, kind: type, what: str) -> Any:
    if not isinstance(value, kind):
        raise DataError(f"{what}, but found {type(value).__name__}")
    return value


def _one_of(schema: Schema, keep_nulls: bool) -> Convert:
    converts = [reader(field.schema, keep_nulls=keep_nulls) for field in schema.fields]

    def read(value: Any) -> Struct:
        branch = _branch(schema, value)
        if branch is None:
            raise DataError(f"Did not find matching oneof field for data of type {type(value).__name__}")
        return Struct.of(schema, [convert(value) if index == branch else None for index, convert in enumerate(converts)])

    return read


def _branch(schema: Schema, value: Any) -> int | None:
    """Return the index of the first branch of a value's type; of structs, that with most of the object's properties."""
    found, most = None, -1
    for index, field in enumerate(schema.fields):
        if field.schema.type is Type.STRUCT and isinstance(value, dict):
            matching = sum(inner.name in value for inner in field.schema.fields)
            if matching > most:
                found, most = index, matching
        elif _is_instance(field.schema, value):
            return index
    return found


def _is_instance(schema: Schema, value: Any) -> bool:
    if schema.type in INTEGER_BITS:
        return type(value) is int
    if schema.type in _FLOATS:
        return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)
    if schema.type is Type.BYTES:
        return isinstance(value, (float, Decimal))
    expected: Mapping[Type, type | tuple[type, ...]] = {
        Type.BOOLEAN: bool,
        Type.STRING: str,
        Type.ARRAY: list,
        Type.MAP: (dict, list),
        Type.STRUCT: (),
    }
    return isinstance(value, expected[schema.type])


def holds_decimals(schema: Schema) -> bool:
    """Return True if the schema contains a Decimal, which must not be parsed as a float."""
    inner = [*(field.schema for field in schema.fields), schema.key_schema, schema.value_schema]
    return schema.name == DECIMAL or any(part is not None and holds_decimals(part) for part in inner)
