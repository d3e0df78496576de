"""Converts schemas to and from their JSON form. No I/O."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sluiceway.data.schema import Schema, Type
from sluiceway.data.struct import validate_value
from sluiceway.errors import DataError, SchemaBuilderError
from sluiceway.java.numbers import wrap

DefaultFromJson = Callable[[Schema, Any], Any]

_TYPES = {type_.value: type_ for type_ in Type}


def schema_to_json(schema: Schema | None, default_to_json: Callable[[Schema, Any], Any]) -> dict[str, Any] | None:
    """Return a schema as JSON, with members in Connect's order; ``default_to_json`` converts default values."""
    if schema is None:
        return None
    node: dict[str, Any] = {"type": schema.type.value}
    if schema.type is Type.ARRAY:
        node["items"] = schema_to_json(schema.value_schema, default_to_json)
    elif schema.type is Type.MAP:
        node["keys"] = schema_to_json(schema.key_schema, default_to_json)
        node["values"] = schema_to_json(schema.value_schema, default_to_json)
    elif schema.type is Type.STRUCT:
        node["fields"] = [
            {**(schema_to_json(field.schema, default_to_json) or {}), "field": field.name} for field in schema.fields
        ]
    node["optional"] = schema.optional
    attributes = {"name": schema.name, "version": schema.version, "doc": schema.doc}
    node |= {key: value for key, value in attributes.items() if value is not None}
    if schema.parameters:
        node["parameters"] = dict(schema.parameters)
    if schema.default is not None:
        node["default"] = default_to_json(schema, schema.default)
    return node


def schema_from_json(node: Any, default_from_json: DefaultFromJson) -> Schema | None:
    """Return the schema in exact JSON, None for null. Raises DataError with Connect's messages."""
    if node is None:
        return None
    if not isinstance(node, dict) or not isinstance(node.get("type"), str):
        raise DataError("Schema must contain 'type' field")
    type_ = _TYPES.get(node["type"])
    if type_ is None:
        raise DataError(f"Unknown schema type: {node['type']}")
    inner = _inner(type_, node, default_from_json)
    attributes = _attributes(node) | inner
    schema = Schema(type_, **attributes)
    if "default" not in node:
        return schema
    default = default_from_json(schema, node["default"])
    # Connect requires a struct default to have the same schema, default included, which is impossible.
    if default is not None and type_ is Type.STRUCT:
        raise SchemaBuilderError("Invalid default value")
    try:
        validate_value(schema, default)
    except DataError as error:
        raise SchemaBuilderError("Invalid default value") from error
    return Schema(type_, **attributes, default=default)


def _attributes(node: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes other than the inner schemas. Like Connect, ignore those of a wrong type."""
    name, version, doc, parameters = (node.get(key) for key in ("name", "version", "doc", "parameters"))
    if isinstance(parameters, dict) and not all(isinstance(value, str) for value in parameters.values()):
        raise DataError("Schema parameters must have string values.")
    return {
        "optional": node.get("optional") is True,
        "name": name if isinstance(name, str) else None,
        "version": wrap(version, 32) if type(version) is int else None,
        "doc": doc if isinstance(doc, str) else None,
        "parameters": parameters if isinstance(parameters, dict) else None,
    }


def _inner(type_: Type, node: dict[str, Any], default_from_json: DefaultFromJson) -> dict[str, Any]:
    if type_ is Type.ARRAY:
        items = schema_from_json(node.get("items"), default_from_json)
        if items is None:
            raise DataError("Array schema did not specify the element type")
        return {"value_schema": items}
    if type_ is Type.MAP:
        return {
            "key_schema": _map_member(node, "keys", "key", default_from_json),
            "value_schema": _map_member(node, "values", "value", default_from_json),
        }
    if type_ is Type.STRUCT:
        return {"fields": _fields(node.get("fields"), default_from_json)}
    return {}


def _map_member(node: dict[str, Any], member: str, name: str, default_from_json: DefaultFromJson) -> Schema:
    if member not in node:
        raise DataError(f"Map schema did not specify the {name} type")
    schema = schema_from_json(node[member], default_from_json)
    if schema is None:
        raise SchemaBuilderError(f"{name}Schema cannot be null.")
    return schema


def _fields(nodes: Any, default_from_json: DefaultFromJson) -> list[tuple[str, Schema]]:
    if not isinstance(nodes, list):
        raise DataError('Struct schema\'s "fields" argument is not an array.')
    fields: dict[str, Schema] = {}
    for node in nodes:
        name = node.get("field") if isinstance(node, dict) else None
        if not isinstance(name, str):
            raise DataError("Struct schema's field name not specified properly")
        schema = schema_from_json(node, default_from_json)
        if schema is None or not name:
            raise SchemaBuilderError("fieldName cannot be null.")
        if name in fields:
            raise SchemaBuilderError(f"Cannot create field because of field name duplication {name}")
        fields[name] = schema
    return list(fields.items())
