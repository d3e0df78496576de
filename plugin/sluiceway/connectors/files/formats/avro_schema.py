"""Avro schemas of Connect's schemas, as Confluent's AvroConverter makes them. No I/O."""

from __future__ import annotations

import re
from typing import Any

from sluiceway.data import Schema, Type
from sluiceway.data.logical import DATE, DECIMAL, SCALE, TIME, TIMESTAMP
from sluiceway.errors import DataError

_NAMESPACE = "io.confluent.connect.avro"
_PRECISION = "connect.decimal.precision"
_DEFAULT_PRECISION = 64
_TYPES = {
    Type.INT8: "int",
    Type.INT16: "int",
    Type.INT32: "int",
    Type.INT64: "long",
    Type.FLOAT32: "float",
    Type.FLOAT64: "double",
    Type.BOOLEAN: "boolean",
    Type.STRING: "string",
    Type.BYTES: "bytes",
}
# Values are passed as numbers and bytes, which fastavro accepts for a logical type only if it does not know the name.
_LOGICAL = {DATE: "date", TIME: "time-millis", TIMESTAMP: "timestamp-millis", DECIMAL: "decimal"}

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)

AvroSchema = dict[str, Any] | str | list[Any]


def avro_schema(schema: Schema) -> AvroSchema:
    """Return the Avro schema of a file. Raises DataError for arrays and maps without inner schemas."""
    return _Names().of(schema)


class _Names:
    """Converts schemas; a record's name is defined once and referred to afterwards, if the schema is the same."""

    def __init__(self) -> None:
        self._known: dict[str, Schema] = {}

    def of(self, schema: Schema) -> AvroSchema:
        found = self._required(schema)
        return ["null", found] if schema.optional else found

    def _required(self, schema: Schema) -> AvroSchema:
        if schema.type is Type.STRUCT:
            return self._record(schema)
        if schema.type is Type.ARRAY:
            return {"type": "array", "items": self.of(_inner(schema.value_schema))}
        if schema.type is Type.MAP:
            return self._map(schema)
        return _primitive(schema)

    def _map(self, schema: Schema) -> AvroSchema:
        keys, values = _inner(schema.key_schema), _inner(schema.value_schema)
        if keys.type is Type.STRING and not keys.optional:
            return {"type": "map", "values": self.of(values)}
        fields = [{"name": "key", "type": self.of(keys)}, {"name": "value", "type": self.of(values)}]
        return {"type": "array", "items": {"type": "record", "name": self._new("MapEntry"), "fields": fields}}

    def _record(self, schema: Schema) -> AvroSchema:
        name = schema.name or self._new("ConnectDefault")
        for part in name.split("."):
            _check_name(part)
        if name in self._known:
            if self._known[name] == schema.replace(optional=False, default=None):
                return name
            name = self._new(name)
        self._known[name] = schema.replace(optional=False, default=None)
        record: dict[str, Any] = {"type": "record", "name": name, "fields": [self._field(field) for field in schema.fields]}
        if schema.version is not None:
            record["connect.version"] = schema.version
        if schema.name:
            record["connect.name"] = schema.name
        if schema.doc:
            record["doc"] = schema.doc
        return record

    def _field(self, field: Any) -> dict[str, Any]:
        _check_name(field.name)
        found: dict[str, Any] = {"name": field.name, "type": self.of(field.schema)}
        if field.schema.doc:
            found["doc"] = field.schema.doc
        if field.schema.optional and field.schema.default is None:
            found["default"] = None
        return found

    def _new(self, name: str) -> str:
        qualified = name if "." in name else f"{_NAMESPACE}.{name}"
        number = 1
        unique = qualified
        while unique in self._known:
            number += 1
            unique = f"{qualified}{number}"
        self._known[unique] = Schema(Type.STRING)
        return unique


def _primitive(schema: Schema) -> AvroSchema:
    found: dict[str, Any] = {"type": _TYPES[schema.type]}
    if schema.name in _LOGICAL:
        found["logicalType"] = _LOGICAL[schema.name]
        if schema.name == DECIMAL:
            found["scale"] = int(schema.parameters.get(SCALE, "0"))
            found["precision"] = max(int(schema.parameters.get(_PRECISION, _DEFAULT_PRECISION)), found["scale"])
    if schema.type in (Type.INT8, Type.INT16):
        found["connect.type"] = schema.type.value
    if schema.version is not None:
        found["connect.version"] = schema.version
    if schema.name:
        found["connect.name"] = schema.name
    if schema.parameters:
        found["connect.parameters"] = dict(schema.parameters)
    return found if len(found) > 1 else str(found["type"])


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise DataError(f"Avro does not allow the name {name!r}. Rename it with the transform ReplaceField or SetSchemaMetadata.")


def _inner(schema: Schema | None) -> Schema:
    if schema is None:
        raise DataError("Avro files need the schemas of the elements of arrays and maps")
    return schema
