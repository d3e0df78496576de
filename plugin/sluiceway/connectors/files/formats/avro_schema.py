"""Avro schemas of Connect's schemas, as Confluent's AvroConverter makes them. No I/O."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from sluiceway.data import Schema, Type
from sluiceway.data.logical import DATE, DECIMAL, SCALE, TIME, TIMESTAMP
from sluiceway.errors import DataError

_NAMESPACE = "io.confluent.connect.avro"
_ENUM = f"{_NAMESPACE}.Enum"
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


@dataclass(frozen=True, slots=True)
class AvroOptions:
    """The options of Confluent's AvroData: properties of Connect's schemas, enums as enums, optional keys of maps."""

    meta_data: bool = True
    enhanced: bool = False
    optional_map_keys: bool = False

    def is_map(self, keys: Schema) -> bool:
        """Return whether a map with such keys becomes a map, not an array of entries."""
        return keys.type is Type.STRING and (self.optional_map_keys or not keys.optional)


_DEFAULTS = AvroOptions()


def avro_schema(schema: Schema, options: AvroOptions = _DEFAULTS) -> AvroSchema:
    """Return the Avro schema of a file. Raises DataError for arrays and maps without inner schemas."""
    return _Names(options).of(schema)


class _Names:
    """Converts schemas; a name is defined once and referred to afterwards, if the schema is the same."""

    def __init__(self, options: AvroOptions) -> None:
        self._options = options
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
        if self._options.enhanced and schema.type is Type.STRING and _ENUM in schema.parameters:
            return self._enum(schema)
        return self._primitive(schema)

    def _map(self, schema: Schema) -> AvroSchema:
        keys, values = _inner(schema.key_schema), _inner(schema.value_schema)
        if self._options.is_map(keys):
            return {"type": "map", "values": self.of(values)}
        fields = [{"name": "key", "type": self.of(keys)}, {"name": "value", "type": self.of(values)}]
        return {"type": "array", "items": {"type": "record", "name": self._new("MapEntry"), "fields": fields}}

    def _record(self, schema: Schema) -> AvroSchema:
        name, is_known = self._named(schema.name or self._new("ConnectDefault"), schema)
        if is_known:
            return name
        record: dict[str, Any] = {"type": "record", "name": name, "fields": [self._field(field) for field in schema.fields]}
        record |= self._meta_data(schema, parameters=False)
        if schema.doc:
            record["doc"] = schema.doc
        return record

    def _enum(self, schema: Schema) -> AvroSchema:
        """Return an enum. Its symbols are the parameters that the AvroConverter adds."""
        name, is_known = self._named(schema.parameters[_ENUM], schema)
        if is_known:
            return name
        symbols = [symbol for key, symbol in schema.parameters.items() if key.startswith(f"{_ENUM}.")]
        return {"type": "enum", "name": name, "symbols": symbols, **self._meta_data(schema)}

    def _named(self, name: str, schema: Schema) -> tuple[str, bool]:
        """Return the name of a type, another one if it is that of a different type, and whether it is defined already."""
        for part in name.split("."):
            _check_name(part)
        required = schema.replace(optional=False, default=None)
        if name in self._known:
            if self._known[name] == required:
                return name, True
            name = self._new(name)
        self._known[name] = required
        return name, False

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

    def _primitive(self, schema: Schema) -> AvroSchema:
        found: dict[str, Any] = {"type": _TYPES[schema.type]}
        if schema.name in _LOGICAL:
            found["logicalType"] = _LOGICAL[schema.name]
            if schema.name == DECIMAL:
                found["scale"] = int(schema.parameters.get(SCALE, "0"))
                found["precision"] = max(int(schema.parameters.get(_PRECISION, _DEFAULT_PRECISION)), found["scale"])
        found |= self._meta_data(schema)
        return found if len(found) > 1 else str(found["type"])

    def _meta_data(self, schema: Schema, *, parameters: bool = True) -> dict[str, Any]:
        """Return the properties that hold what Avro does not have."""
        found: dict[str, Any] = {}
        if not self._options.meta_data:
            return found
        if schema.type in (Type.INT8, Type.INT16):
            found["connect.type"] = schema.type.value
        if schema.version is not None:
            found["connect.version"] = schema.version
        if schema.name:
            found["connect.name"] = schema.name
        if parameters and schema.parameters:
            found["connect.parameters"] = dict(schema.parameters)
        return found


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise DataError(f"Avro does not allow the name {name!r}. Rename it with the transform ReplaceField or SetSchemaMetadata.")


def _inner(schema: Schema | None) -> Schema:
    if schema is None:
        raise DataError("Avro files need the schemas of the elements of arrays and maps")
    return schema
