"""Adds fields to a struct, also inside of its structs, by names such as ``after.name``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from sluiceway.data import Schema, Struct, Type
from sluiceway.errors import DataError, SchemaBuilderError
from sluiceway.transforms.debezium.errors import DebeziumError
from sluiceway.transforms.util.mappings import java_split
from sluiceway.transforms.util.requirements import java_class, require_struct
from sluiceway.transforms.util.structs import fields_of, struct_like, struct_schema

_ROOT = "payload"


class Entry(NamedTuple):
    """A field to add. Dots in the name separate the structs around the field."""

    name: str
    schema: Schema | None
    value: Any

    @property
    def path(self) -> list[str]:
        return java_split(self.name, ".")


def schema_with(schema: Schema, entries: Sequence[Entry]) -> Schema:
    """Return a struct schema with more fields. Missing structs around them are optional.

    Raises DebeziumError if a field on the path is primitive, SchemaBuilderError for an entry without a schema.
    """
    nested = [each for each in entries if "." in each.name]
    for each in nested:
        _check_path(schema, each)
    return _schema(_ROOT, schema, entries, nested, 0)


def struct_with(struct: Struct, entries: Sequence[Entry], schema: Schema) -> Struct:
    """Return the struct with more fields; ``schema`` has them. Raises DataError for an invalid value."""
    return _struct(_ROOT, struct, entries, schema, [each for each in entries if "." in each.name], 0)


def _check_path(schema: Schema, entry: Entry) -> None:
    for name in entry.path[:-1]:
        field = schema.field(name)
        if field is None:
            return
        if field.schema.type.primitive:
            raise DebeziumError(f"Field '{name}' is a primitive type, not a struct. Cannot add nested field '{entry.name}'.")
        schema = field.schema


def _schema(name: str, schema: Schema, entries: Sequence[Entry], nested: Sequence[Entry], level: int) -> Schema:
    if schema.type.primitive:
        return schema
    fields: dict[str, Schema] = {}
    for field in fields_of(schema):
        inner = _leads_into(field.name, nested)
        fields[field.name] = _schema(field.name, field.schema, entries, nested, level + 1) if inner else field.schema
    for entry in entries:
        added = _name_in(name, entry, level)
        if added is not None and added not in fields:
            fields[added] = _given(added, entry.schema)
    for parent in _new_parents(name, schema, nested, level):
        inside = ((child, _given(child, entry.schema)) for child, entry in _children(parent, name, entries, level))
        if parent in fields:
            raise SchemaBuilderError(f"Cannot create field because of field name duplication {parent}")
        fields[parent] = struct_schema(inside, optional=True)
    return struct_like(schema, fields.items())


def _given(name: str, schema: Schema | None) -> Schema:
    if not name:
        raise SchemaBuilderError("fieldName cannot be null.")
    if schema is None:
        raise SchemaBuilderError(f"fieldSchema for field {name} cannot be null.")
    return schema


def _struct(name: str, struct: Struct, entries: Sequence[Entry], schema: Schema, nested: Sequence[Entry], level: int) -> Struct:
    updated = Struct(schema)
    for field in struct.schema.fields:
        value = struct[field.name]
        if value is None:
            continue
        if _leads_into(field.name, nested):
            inner = require_struct(value, field.schema, "Nested field")
            value = _struct(field.name, inner, entries, _field_schema(schema, field.name), nested, level + 1)
        updated[field.name] = value
    for entry in entries:
        added = _name_in(name, entry, level)
        if added is not None:
            _put(updated, added, entry)
    for parent in _new_parents(name, struct.schema, nested, level):
        if schema.field(parent) is not None:
            made = Struct(_field_schema(schema, parent))
            for child, entry in _children(parent, name, entries, level):
                _put(made, child, entry)
            updated[parent] = made
    return updated


def _field_schema(schema: Schema, name: str) -> Schema:
    field = schema.field(name)
    if field is None:
        raise DataError(f"{name} is not a valid field name")
    return field.schema


def _put(struct: Struct, name: str, entry: Entry) -> None:
    target = _field_schema(struct.schema, name)
    source = entry.schema
    if source is not None and entry.value is not None and source.type is not target.type and target.type is not Type.STRUCT:
        kind = java_class(entry.value, source)  # Python's ints fit any width, Java's do not
        label = "" if target.name is None else f' "{target.name}"'
        raise DataError(f'Invalid Java object for schema{label} with type {target.type.name}: class {kind} for field: "{name}"')
    struct[name] = entry.value


def _name_in(struct: str, entry: Entry, level: int) -> str | None:
    """Return the name of the field that an entry adds to a struct at a level below the root, None if it adds none."""
    path = entry.path
    if len(path) == 1 and struct == _ROOT:
        return path[0]
    if len(path) == level + 1 and path[max(level - 1, 0)] == struct:
        return path[level]
    return None


def _leads_into(name: str, nested: Sequence[Entry]) -> bool:
    """Return whether a field's name is in a path, as Debezium finds it: anywhere, also as the end of a longer name."""
    return any(f"{name}." in each.name for each in nested)


def _new_parents(struct: str, schema: Schema, nested: Sequence[Entry], level: int) -> list[str]:
    """Return the structs to create in a struct because the path of an entry goes through them."""
    parents: dict[str, None] = {}
    for path in (each.path for each in nested):
        here = struct == _ROOT if level == 0 else level < len(path) and path[level - 1] == struct
        if here and level < len(path) - 1 and schema.field(path[level]) is None:
            parents[path[level]] = None
    return list(parents)


def _children(parent: str, struct: str, entries: Sequence[Entry], level: int) -> Iterator[tuple[str, Entry]]:
    for entry in entries:
        path = entry.path
        if level == 0 and struct == _ROOT:
            if len(path) > 1 and path[0] == parent:
                yield path[1], entry
        elif level > 0 and level + 1 < len(path) and ".".join(path[: level + 1]) == parent:
            yield path[level + 1], entry
