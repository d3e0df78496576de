"""JsonConverter's JSON form of schemas, both ways. Pure."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

from sluiceway.data.schema import Schema, Type
from sluiceway.errors import DataError

_TYPES = {type_.value: type_ for type_ in Type}


def schema_to_json(schema: Schema, default_to_json: Callable[[Schema, Any], Any]) -> dict[str, Any]:
    """Return a schema's JSON with its members in Connect's order; ``default_to_json`` turns default values into JSON."""
    node: dict[str, Any] = {"type": schema.type.value}
    if schema.type is Type.ARRAY and schema.value_schema is not None:
        node["items"] = schema_to_json(schema.value_schema, default_to_json)
    elif schema.type is Type.MAP and schema.key_schema is not None and schema.value_schema is not None:
        node["keys"] = schema_to_json(schema.key_schema, default_to_json)
        node["values"] = schema_to_json(schema.value_schema, default_to_json)
    elif schema.type is Type.STRUCT:
        node["fields"] = [schema_to_json(field.schema, default_to_json) | {"field": field.name} for field in schema.fields]
    node["optional"] = schema.optional
    attributes = {"name": schema.name, "version": schema.version, "doc": schema.doc, "parameters": schema.parameters or None}
    node |= {key: value for key, value in attributes.items() if value is not None}
    if schema.default is not None:
        node["default"] = default_to_json(schema, schema.default)
    return node


def schema_from_json(node: Any, default_from_json: Callable[[Schema, Any], Any]) -> Schema | None:
    """Return the schema that JSON describes, None for JSON's null; raises DataError with Connect's texts."""
    if node is None:
        return None
    if not isinstance(node, dict) or not isinstance(node.get("type"), str):
        raise DataError("Schema must contain 'type' field")
    type_ = _TYPES.get(node["type"])
    if type_ is None:
        raise DataError(f"Unknown schema type: {node['type']}")
    attributes = _attributes(node) | _inner(type_, node, default_from_json)
    schema = Schema(type_, **attributes)
    if node.get("default") is None:
        return schema
    return Schema(type_, **attributes, default=default_from_json(schema, node["default"]))


def _attributes(node: dict[str, Any]) -> dict[str, Any]:
    """Name, version and the like; those of a wrong type are ignored, as Connect ignores them."""
    name, version, doc, parameters = (node.get(key) for key in ("name", "version", "doc", "parameters"))
    if isinstance(parameters, dict) and not all(isinstance(value, str) for value in parameters.values()):
        raise DataError("Schema parameters must have string values.")
    return {
        "optional": node.get("optional") is True,
        "name": name if isinstance(name, str) else None,
        "version": version if type(version) is int else None,
        "doc": doc if isinstance(doc, str) else None,
        "parameters": parameters if isinstance(parameters, dict) else None,
    }


def _inner(type_: Type, node: dict[str, Any], default_from_json: Callable[[Schema, Any], Any]) -> dict[str, Any]:
    def inner(member: str, complaint: str) -> Schema:
        schema = schema_from_json(node.get(member), default_from_json)
        if schema is None:
            raise DataError(complaint)
        return schema

    if type_ is Type.ARRAY:
        return {"value_schema": inner("items", "Array schema did not specify the element type")}
    if type_ is Type.MAP:
        return {
            "key_schema": inner("keys", "Map schema did not specify the key type"),
            "value_schema": inner("values", "Map schema did not specify the value type"),
        }
    if type_ is Type.STRUCT:
        return {"fields": _fields(node.get("fields"), default_from_json)}
    return {}


def _fields(nodes: Any, default_from_json: Callable[[Schema, Any], Any]) -> list[tuple[str, Schema]]:
    if not isinstance(nodes, list):
        raise DataError('Struct schema\'s "fields" argument is not an array.')
    fields: list[tuple[str, Schema]] = []
    for node in nodes:
        name = node.get("field") if isinstance(node, dict) else None
        if not isinstance(name, str):
            raise DataError("Struct schema's field name not specified properly")
        schema = schema_from_json(node, default_from_json)
        assert schema is not None  # noqa: S101 (the node is an object)
        fields.append((name, schema))
    return fields


def to_base64(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


def from_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise DataError("Invalid bytes field") from error
