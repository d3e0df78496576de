"""Decides what null means in a value with a schema: null, or the schema's default. No I/O."""

from __future__ import annotations

import functools
from typing import Any

from sluiceway.data.schema import Schema
from sluiceway.data.struct import Struct


def null_value_schema(schema: Schema, *, replace: bool) -> Schema:
    """Return the schema whose defaults a reader of values takes for their nulls.

    With ``replace`` this is the schema itself. Otherwise its optional parts have no default, at any depth, so that an explicit
    null stays null. A required part keeps its default: it has no null, so a missing value can only mean the default. Values of
    ``schema`` have the same form as those of the result.
    """
    return schema if replace else _without_optional_defaults(schema)


@functools.lru_cache(maxsize=4096)
def _without_optional_defaults(schema: Schema) -> Schema:
    keys, items = schema.key_schema, schema.value_schema
    found = schema.replace(
        default=null_value(schema, replace=False),
        fields=[(field.name, _without_optional_defaults(field.schema)) for field in schema.fields],
        key_schema=None if keys is None else _without_optional_defaults(keys),
        value_schema=None if items is None else _without_optional_defaults(items),
    )
    return schema if found == schema else found


def null_value(schema: Schema, *, replace: bool) -> Any:
    """Return the default that ``null_value_schema`` has for null; None if there is none."""
    return schema.default if replace or not schema.optional else None


def read_field(struct: Struct, name: str, *, replace: bool) -> Any:
    """Return a struct's field with ``null_value`` in place of null. Raises DataError for an unknown field."""
    if replace:
        return struct[name]
    value, field = struct.get_without_default(name), struct.schema.field(name)
    return value if value is not None or field is None else null_value(field.schema, replace=False)
