"""Configures a transform and sends single values through it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from sluiceway.api import SinkRecord, SourceRecord, Transform
from sluiceway.data import Schema, Struct

T = TypeVar("T", bound=Transform)


def configured(cls: type[T], **options: str) -> T:
    """Return a transform with these options; ``_`` in a name stands for a dot."""
    transform = cls()
    transform.configure({name.replace("_", "."): value for name, value in options.items()})
    return transform


def transformed(transform: Transform, value: Any, schema: Schema | None = None, **attributes: Any) -> SinkRecord:
    """Return the record that the transform makes of one with this value, from partition 3, offset 42."""
    record = SinkRecord("orders", 3, 42, value, schema, **attributes)
    result = transform.apply(record)
    assert isinstance(result, SinkRecord)
    return result


def schema_of(record: SinkRecord | SourceRecord) -> Schema:
    """Return the value schema of a record that must have one."""
    assert record.value_schema is not None
    return record.value_schema


def value_of(transform: Transform, value: Any, schema: Schema | None = None) -> Any:
    """Return the value afterwards; a struct as a dict of what is in it, without defaults."""
    result = transformed(transform, value, schema).value
    return plain(result) if isinstance(result, Struct) else result


def plain(struct: Struct) -> dict[str, Any]:
    return {name: struct.get_without_default(name) for name in struct}


def source_record(value: Any, schema: Schema | None = None) -> SourceRecord:
    return SourceRecord({"file": "f"}, {"position": 1}, "orders", value, schema)


def struct_of(fields: Mapping[str, Schema], values: Mapping[str, Any], **attributes: Any) -> tuple[Struct, Schema]:
    """Return a struct and its schema, in the order in which ``transformed`` takes them."""
    schema = Schema.struct(fields, **attributes)
    return Struct(schema, values), schema
