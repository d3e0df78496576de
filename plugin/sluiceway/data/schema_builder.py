"""Builds schemas attribute by attribute with checks (Connect's ``SchemaBuilder``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sluiceway.data.schema import Schema, Type
from sluiceway.data.struct import validate_value
from sluiceway.errors import DataError, SchemaBuilderError


class SchemaBuilder:
    """Builds a schema: ``SchemaBuilder.struct().name("Point").field("x", INT32_SCHEMA).build()``.

    Every method returns the builder. It raises SchemaBuilderError for an attribute that is invalid or already set.
    """

    def __init__(self, type_: Type | None) -> None:
        if type_ is None:
            raise SchemaBuilderError("type cannot be null")
        self.type = type_
        self._attributes: dict[str, Any] = {}
        self._parameters: dict[str, str] = {}
        self._fields: dict[str, Schema] = {}

    @classmethod
    def int8(cls) -> SchemaBuilder:
        return cls(Type.INT8)

    @classmethod
    def int16(cls) -> SchemaBuilder:
        return cls(Type.INT16)

    @classmethod
    def int32(cls) -> SchemaBuilder:
        return cls(Type.INT32)

    @classmethod
    def int64(cls) -> SchemaBuilder:
        return cls(Type.INT64)

    @classmethod
    def float32(cls) -> SchemaBuilder:
        return cls(Type.FLOAT32)

    @classmethod
    def float64(cls) -> SchemaBuilder:
        return cls(Type.FLOAT64)

    @classmethod
    def bool_(cls) -> SchemaBuilder:
        return cls(Type.BOOLEAN)

    @classmethod
    def string(cls) -> SchemaBuilder:
        return cls(Type.STRING)

    @classmethod
    def bytes_(cls) -> SchemaBuilder:
        return cls(Type.BYTES)

    @classmethod
    def struct(cls) -> SchemaBuilder:
        return cls(Type.STRUCT)

    @classmethod
    def array(cls, items: Schema) -> SchemaBuilder:
        """Return a builder of lists of ``items``."""
        if items is None:
            raise SchemaBuilderError("valueSchema cannot be null.")
        builder = cls(Type.ARRAY)
        builder._attributes["value_schema"] = items
        return builder

    @classmethod
    def map(cls, keys: Schema, values: Schema) -> SchemaBuilder:
        """Return a builder of dicts from ``keys`` to ``values``."""
        if keys is None:
            raise SchemaBuilderError("keySchema cannot be null.")
        if values is None:
            raise SchemaBuilderError("valueSchema cannot be null.")
        builder = cls(Type.MAP)
        builder._attributes |= {"key_schema": keys, "value_schema": values}
        return builder

    def optional(self) -> SchemaBuilder:
        return self._set("optional", value=True)

    def required(self) -> SchemaBuilder:
        return self._set("optional", value=False)

    def default(self, value: Any) -> SchemaBuilder:
        """Set the default, which must be valid for the schema built so far."""
        self._check_unset("default", value)
        try:
            validate_value(self._built(), value)
        except DataError as error:
            raise SchemaBuilderError("Invalid default value") from error
        self._attributes["default"] = value
        return self

    def name(self, name: str) -> SchemaBuilder:
        return self._set("name", name)

    def version(self, version: int) -> SchemaBuilder:
        return self._set("version", version)

    def doc(self, doc: str) -> SchemaBuilder:
        return self._set("doc", doc)

    def parameter(self, key: str, value: str) -> SchemaBuilder:
        """Set or replace one parameter."""
        self._parameters[key] = value
        return self

    def parameters(self, parameters: Mapping[str, str]) -> SchemaBuilder:
        self._parameters |= parameters
        return self

    def field(self, name: str, schema: Schema) -> SchemaBuilder:
        """Add a field at the end of a struct."""
        if self.type is not Type.STRUCT:
            raise SchemaBuilderError(f"Cannot create fields on type {self.type.name}")
        if not name:
            raise SchemaBuilderError("fieldName cannot be null.")
        if schema is None:
            raise SchemaBuilderError(f"fieldSchema for field {name} cannot be null.")
        if name in self._fields:
            raise SchemaBuilderError(f"Cannot create field because of field name duplication {name}")
        self._fields[name] = schema
        return self

    def build(self) -> Schema:
        """Return the schema. The builder stays usable."""
        return self._built()

    def _built(self) -> Schema:
        return Schema(self.type, fields=self._fields.items(), parameters=self._parameters, **self._attributes)

    def _set(self, attribute: str, value: Any) -> SchemaBuilder:
        self._check_unset(attribute, value)
        self._attributes[attribute] = value
        return self

    def _check_unset(self, attribute: str, value: Any) -> None:
        present = self._attributes.get(attribute)
        if present is not None and present is not value:
            raise SchemaBuilderError(f"Invalid SchemaBuilder call: {attribute} has already been set.")
