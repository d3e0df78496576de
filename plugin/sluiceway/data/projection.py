"""Projects values from one schema to a compatible one (Connect's ``SchemaProjector``). No I/O."""

from __future__ import annotations

from typing import Any

from sluiceway.data.schema import Schema, Type
from sluiceway.data.struct import Struct
from sluiceway.data.text import java_text
from sluiceway.errors import SchemaProjectorError
from sluiceway.java.numbers import to_float32

_WIDENING = (Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.FLOAT32, Type.FLOAT64)


def is_promotable(source: Type, target: Type) -> bool:
    """Return True if the target is the same number type or a wider one."""
    return source in _WIDENING and target in _WIDENING and _WIDENING.index(source) <= _WIDENING.index(target)


def check_compatible(source: Schema, target: Schema) -> None:
    """Raise SchemaProjectorError unless names, parameters and types (or promotable number types) match. Ignores inner schemas."""
    if source.type is not target.type and not is_promotable(source.type, target.type):
        raise SchemaProjectorError(f"Schema type mismatch. source type: {source.type.name} and target type: {target.type.name}")
    if source.name != target.name:
        raise SchemaProjectorError(
            f"Schema name mismatch. source name: {java_text(source.name)} and target name: {java_text(target.name)}"
        )
    if source.parameters != target.parameters:
        raise SchemaProjectorError(
            f"Schema parameters not equal. source parameters: {java_text(source.parameters or None)} "
            f"and target parameters: {java_text(target.parameters or None)}"
        )


def project(source: Schema, value: Any, target: Schema) -> Any:
    """Return a value of the source schema as a value of the target schema.

    Drops fields that the target does not have. A null becomes the default in the source schema, if that has one. Fields that
    only the target has are null if optional, else their default. Raises
    SchemaProjectorError for incompatible schemas, and DataError for a value that does not match its schema.
    """
    check_compatible(source, target)
    if source.optional and not target.optional and target.default is None:
        raise SchemaProjectorError("Writer schema is optional, however, target schema does not provide a default value.")
    if value is None:
        return target.default if source.optional and not target.optional else None
    if target.type is Type.STRUCT:
        return _project_struct(source, value, target)
    if target.type is Type.ARRAY:
        return [project(_inner(source.value_schema), item, _inner(target.value_schema)) for item in value]
    if target.type is Type.MAP:
        keys, target_keys = _inner(source.key_schema), _inner(target.key_schema)
        items, target_items = _inner(source.value_schema), _inner(target.value_schema)
        return {project(keys, key, target_keys): project(items, item, target_items) for key, item in value.items()}
    return _promote(value, source.type, target.type)


def _inner(schema: Schema | None) -> Schema:
    if schema is None:
        raise SchemaProjectorError("Cannot project an array or map whose schema has no key or value schema")
    return schema


def _project_struct(source: Schema, value: Struct, target: Schema) -> Struct:
    projected = Struct(target)
    for field in target.fields:
        present = source.field(field.name)
        if present is not None:
            try:
                given = value.get_without_default(field.name)
                given = present.schema.default if given is None else given
                projected[field.name] = project(present.schema, given, field.schema)
            except SchemaProjectorError as error:
                raise SchemaProjectorError(f"Error projecting {field.name}") from error
        elif field.schema.default is not None and not field.schema.optional:
            projected[field.name] = field.schema.default
        elif not field.schema.optional:
            raise SchemaProjectorError(f"Required field `{field.name}` is missing from source schema: {source}")
    return projected


def _promote(value: Any, source: Type, target: Type) -> Any:
    if source is target or isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    if target is Type.FLOAT32:
        return to_float32(float(value))
    return float(value) if target is Type.FLOAT64 else value
