"""Shortcuts to parts of schemas that a test knows to exist."""

from __future__ import annotations

from sluiceway.data import Schema


def field_schema(schema: Schema, name: str) -> Schema:
    """Return the schema of a field that must exist."""
    field = schema.field(name)
    assert field is not None
    return field.schema
