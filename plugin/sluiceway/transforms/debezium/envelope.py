"""Recognizes Debezium's records and reads fields of their structs with Connect's errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from sluiceway.data import Schema, Struct, Type
from sluiceway.errors import DataError
from sluiceway.transforms.util.requirements import java_class
from sluiceway.transforms.util.structs import null_in

BEFORE, AFTER, SOURCE, OPERATION = "before", "after", "source", "op"
READ, CREATE, UPDATE, DELETE, TRUNCATE, MESSAGE = "r", "c", "u", "d", "t", "m"

_ENVELOPE = ".Envelope"
_SCHEMA_CHANGES = (".SchemaChangeValue", ".SchemaChangeKey")

K = TypeVar("K")
V = TypeVar("V")


def is_envelope(schema: Schema | None) -> bool:
    """Return whether the values of a schema are change events."""
    return schema is not None and schema.name is not None and schema.name.endswith(_ENVELOPE)


def envelope_name(topic: str) -> str:
    """Return the name of the schema of a topic's change events."""
    return topic + _ENVELOPE


def is_schema_change(schema: Schema | None) -> bool:
    """Return whether the values of a schema describe changed tables."""
    return schema is not None and schema.name is not None and schema.name.endswith(_SCHEMA_CHANGES)


def typed(struct: Struct, name: str, type_: Type) -> Any:
    """Return the value of a field without its default. Raises DataError for a missing field and for one of another type."""
    field = struct.schema.field(name)
    if field is None:
        raise DataError(f"{name} is not a valid field name")
    if field.schema.type is not type_:
        raise DataError(f"Field '{name}' is not of type {type_.name}")
    return struct.values_[field.index]


def operation_of(value: Struct) -> str | None:
    """Return the operation of a change event in lower case, None if it has none. Raises DataError for a field that is no text."""
    if value.schema.field(OPERATION) is None:
        return None
    operation = typed(value, OPERATION, Type.STRING)
    return None if operation is None else str(operation).lower()


def cast_to_struct(value: Any) -> Struct:
    """Return a value that is a Struct. Raises TypeError for any other, as a cast in Java does."""
    if isinstance(value, Struct):
        return value
    raise TypeError(f"class {java_class(value)} cannot be cast to class org.apache.kafka.connect.data.Struct")


def require_values(schema: Schema, values: list[Any]) -> Struct:
    """Return a struct of valid values. Raises DataError for a null in a required field, even if it has a default."""
    for field in schema.fields:
        if values[field.index] is None and not field.schema.optional:
            raise null_in(field)
    return Struct.of(schema, values)


def without_fields(schema: Schema) -> Schema:
    """Return an optional copy of a schema, without the default, and without the fields if it is a struct.

    Debezium gives this schema to the fields and headers that it adds (Connect's ``SchemaUtil.copySchemaBasics``).
    """
    return Schema(
        schema.type,
        optional=True,
        name=schema.name,
        version=schema.version,
        doc=schema.doc,
        parameters=schema.parameters,
        value_schema=schema.value_schema if schema.type is Type.ARRAY else None,
    )


class RecentlyUsed(Generic[K, V]):
    """A map that forgets the entry that was not used for the longest time when it is full."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._entries: dict[K, V] = {}

    def get(self, key: K, make: Callable[[K], V]) -> V:
        """Return the value of a key, made by ``make`` if it is missing. What ``make`` raises is not remembered."""
        value = self._entries.pop(key) if key in self._entries else make(key)
        self._entries[key] = value
        if len(self._entries) > self._size:
            del self._entries[next(iter(self._entries))]
        return value
