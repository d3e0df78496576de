"""Makes Connect data with a schema from JSON text, as Debezium infers it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from sluiceway.data import (
    OPTIONAL_BOOLEAN_SCHEMA,
    OPTIONAL_BYTES_SCHEMA,
    OPTIONAL_FLOAT64_SCHEMA,
    OPTIONAL_INT32_SCHEMA,
    OPTIONAL_INT64_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    Schema,
    Struct,
)
from sluiceway.data import Type as SchemaType
from sluiceway.errors import ConnectError, DataError
from sluiceway.java.blanks import is_blank
from sluiceway.transforms.util.structs import struct_like, struct_schema

_MOST_DIGITS = 1000  # of a number, in Debezium's JSON parser


class JsonPayloads:
    """Infers schemas of JSON documents and converts documents to them.

    ``nulls_as_bytes`` gives null fields the schema of optional bytes, ``empty_as_text`` gives empty arrays that of text; without
    them such fields are left out.
    """

    def __init__(self, *, nulls_as_bytes: bool, empty_as_text: bool, field_name: Callable[[str], str] = str) -> None:
        self._null = OPTIONAL_BYTES_SCHEMA if nulls_as_bytes else None
        self._empty = Schema.array(OPTIONAL_STRING_SCHEMA, optional=True) if empty_as_text else None
        self._field_name = field_name

    def schema_of(self, name: str | None, node: Any) -> Schema | None:
        """Return the schema of a document, None for one without a schema. Raises ConnectError for an array of several types."""
        if node is None:
            return self._null
        if isinstance(node, dict):
            return self._object_schema(name, node)
        if isinstance(node, list):
            return Schema.array(self._item_schema(name, node), optional=True) if node else self._empty
        return _scalar_schema(node)

    def _object_schema(self, name: str | None, node: dict[str, Any]) -> Schema:
        fields: dict[str, Schema] = {}
        for key, value in node.items():
            field = self._field_name(key)
            prefix = "" if name is None or is_blank(name) else f"{name}."
            schema = self.schema_of(prefix + field, value)
            if schema is not None:
                fields.setdefault(field, schema)
        return struct_schema(fields.items(), name=name, optional=True)

    def _item_schema(self, name: str | None, items: Sequence[Any]) -> Schema:
        sample = self._sample(items)
        if isinstance(sample, dict):
            schemas = dict.fromkeys(self._object_schema(name, each) for each in items if isinstance(each, dict))
            first, *others = schemas
            for other in others:
                first = _merged(first, other)
            return first
        schema = self.schema_of(None, sample)
        if schema is None:
            raise ConnectError("Array '' has unrecognized member schema.")
        return schema

    def _sample(self, items: Sequence[Any]) -> Any:
        """Return the first item that is not null. Raises ConnectError if the items differ in their JSON type or number type."""
        present = [each for each in items if each is not None]
        kinds = {_kind(each) for each in present}
        if len(kinds) > 1:
            raise ConnectError(f"Field is not a homogenous array: {', '.join(sorted(kinds))}.")
        return present[0] if present else None

    def struct_of(self, node: Any, schema: Schema | None) -> Struct:
        """Return a document as a struct. Raises DataError for a document that is no object, and for an invalid value."""
        if schema is None:
            raise TypeError("The document has no schema.")
        struct = Struct(schema)
        for field in schema.fields:
            if field.name in node:
                struct[field.name] = self._value(node[field.name], field.schema)
        return struct

    def _value(self, node: Any, schema: Schema) -> Any:
        if isinstance(node, dict):
            return self.struct_of(node, schema)
        if isinstance(node, list):
            if schema.value_schema is None and node:
                raise DataError(f"Cannot look up value schema on non-array and non-map type: {schema}")
            return [self._value(each, schema.value_schema or schema) for each in node]
        if isinstance(node, int) and not isinstance(node, bool) and not _fits(node, 64):
            raise DataError(f"{node} does not fit into a long.")
        return node


def parse_json(text: str) -> Any:
    """Parse a JSON object or array; ignore what follows it. Raises ValueError."""
    if not text.startswith(("{", "[")):
        raise ValueError(f"Unable to parse payload starting with '{text[:1]}'")
    return _DECODER.raw_decode(text)[0]


def _integer(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError("A number in the JSON text is too long.")
    return int(digits)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON.")


_DECODER = json.JSONDecoder(parse_int=_integer, parse_constant=_no_constant)


def _scalar_schema(node: Any) -> Schema:
    if isinstance(node, str):
        return OPTIONAL_STRING_SCHEMA
    if isinstance(node, bool):
        return OPTIONAL_BOOLEAN_SCHEMA
    if isinstance(node, int) and _fits(node, 32):
        return OPTIONAL_INT32_SCHEMA
    return OPTIONAL_INT64_SCHEMA if isinstance(node, int) and _fits(node, 64) else OPTIONAL_FLOAT64_SCHEMA


def _fits(number: int, bits: int) -> bool:
    return -(1 << bits - 1) <= number < 1 << bits - 1


def _kind(node: Any) -> str:
    if isinstance(node, dict):
        return "OBJECT"
    return "ARRAY" if isinstance(node, list) else _scalar_schema(node).type.name


def _merged(one: Schema, other: Schema) -> Schema:
    """Return the schema with the fields of both. A field of another type replaces only one of bytes."""
    fields = {field.name: field.schema for field in one.fields}
    for field in other.fields:
        known = fields.get(field.name)
        if known is None or (known.type is SchemaType.BYTES and field.schema.type is not SchemaType.BYTES):
            fields[field.name] = field.schema
    return struct_like(one, fields.items())
