"""Converts fastavro's data to Connect values, with functions made once for each schema. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sluiceway.converters.registry.avro_branches import branch_tag
from sluiceway.converters.registry.avro_connect import (
    AvroTypes,
    Resolved,
    branch_name,
    entry_schemas,
    is_map_entry,
    only_branch,
)
from sluiceway.data import Schema, Struct, Type
from sluiceway.data.avro_schema import KEY, VALUE, AvroOptions
from sluiceway.data.logical import TO_LOGICAL
from sluiceway.data.numbers import Float32, Int32
from sluiceway.java.numbers import wrap

Convert = Callable[[Any], Any]

_BITS = {Type.INT8: 8, Type.INT16: 16}


class Reader:
    """Creates functions that convert fastavro's data to Connect values, for the types of one schema.

    ``tagged`` becomes True if the schema has unions whose branches fastavro has to return (see ``avro_branches``).
    """

    def __init__(self, types: AvroTypes, options: AvroOptions) -> None:
        self._types = types
        self._options = options
        self.tagged = False

    def reader(self, node: Any, schema: Schema, namespace: str = "") -> Convert | None:
        """Return the conversion of values of an Avro type; None if no conversion is needed."""
        resolved = self._types.resolve(node, namespace)
        if resolved.kind == "union":
            return self._union(resolved, schema)
        if schema.name in TO_LOGICAL:
            convert = TO_LOGICAL[schema.name]
            return lambda value: convert(schema, value)
        if schema.type in _BITS:
            bits = _BITS[schema.type]
            return lambda value: wrap(value, bits)
        if resolved.kind == "record":
            return self._record(resolved, schema)
        if resolved.kind in ("array", "map"):
            return self._container(resolved, schema)
        return None

    def _record(self, resolved: Resolved, schema: Schema) -> Convert:
        fields = resolved.node["fields"]
        converts = [
            self.reader(field["type"], inner.schema, resolved.namespace)
            for field, inner in zip(fields, schema.fields, strict=True)
        ]
        if not any(converts):

            def read_plain(value: dict[str, Any]) -> Struct:
                return Struct.of(schema, list(value.values()))

            return read_plain

        def read(value: dict[str, Any]) -> Struct:
            return Struct.of(
                schema,
                [
                    item if convert is None or item is None else convert(item)
                    for convert, item in zip(converts, value.values(), strict=True)
                ],
            )

        return read

    def _container(self, resolved: Resolved, schema: Schema) -> Convert | None:
        if resolved.kind == "map":
            assert schema.value_schema is not None  # noqa: S101 (it is a map)
            values = _item(self.reader(resolved.node["values"], schema.value_schema, resolved.namespace))
            return None if values is None else lambda pairs: {key: values(value) for key, value in pairs.items()}
        items = self._types.resolve(resolved.node["items"], resolved.namespace)
        if is_map_entry(items):
            assert schema.key_schema is not None and schema.value_schema is not None  # noqa: S101, PT018 (it is a map)
            key_type, value_type = entry_schemas(items)
            keys = _item(self.reader(key_type, schema.key_schema, items.namespace)) or _same
            entries = _item(self.reader(value_type, schema.value_schema, items.namespace)) or _same
            return lambda pairs: {keys(pair[KEY]): entries(pair[VALUE]) for pair in pairs}
        assert schema.value_schema is not None  # noqa: S101 (it is an array)
        convert = _item(self.reader(resolved.node["items"], schema.value_schema, resolved.namespace))
        return None if convert is None else lambda values: [convert(value) for value in values]

    def _union(self, resolved: Resolved, schema: Schema) -> Convert | None:
        branch = only_branch(self._types, resolved)
        if branch is not None:
            return _item(self.reader(branch, schema, resolved.namespace))
        self.tagged = True
        branches: dict[str, tuple[str, Convert | None]] = {}
        for node in resolved.node["branches"]:
            inner = self._types.resolve(node, resolved.namespace)
            if inner.kind == "null":
                continue
            name = branch_name(self._types, node, resolved.namespace, self._options)
            field = schema.field(name)
            assert field is not None  # noqa: S101 (made from the same branch)
            convert = self.reader(node, field.schema, resolved.namespace)
            branches[branch_tag(inner.kind, inner.name)] = (name, convert)

        def read(value: Any) -> Struct | None:
            if value is None:
                return None
            name, convert = branches[value[0]]
            item = value[1][VALUE]
            return Struct(schema, {name: item if convert is None else convert(item)})

        return read


def _same(value: Any) -> Any:
    return value


def _item(convert: Convert | None) -> Convert | None:
    return None if convert is None else lambda value: None if value is None else convert(value)


def read_anything(datum: Mapping[str, Any]) -> Any:
    """Return the schemaless value in a record ``Anything``."""
    for name, value in datum.items():
        if value is None:
            continue
        if name == "array":
            return [read_anything(item) for item in value]
        if name == "map":
            return {read_anything(entry[KEY]): read_anything(entry[VALUE]) for entry in value}
        if name == "int":
            return Int32(value)
        return Float32(value) if name == "float" else value
    return None
