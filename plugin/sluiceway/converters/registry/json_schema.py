"""JsonSchemaConverter: Connect's data as JSON, with JSON Schemas in a Schema Registry."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import orjson

from sluiceway.config.definition import ConfigDef, ConfigKey, ConfigValue, Importance, Type
from sluiceway.config.validators import OneOf
from sluiceway.converters.registry import serdes
from sluiceway.converters.registry.base import Deserialization, RegistryConverter, Serialization
from sluiceway.converters.registry.client import WriterSchema
from sluiceway.converters.registry.config import COMMON, KEEP_NULLS, flag
from sluiceway.converters.registry.json_schema_read import ToConnect, holds_decimals, reader
from sluiceway.converters.registry.json_schema_write import JsonOptions, to_json_schema, writer
from sluiceway.data import Schema
from sluiceway.errors import DataError

_DECIMALS = "decimal.format"
_ADDITIONAL = "object.additional.properties"
_NON_REQUIRED = "use.optional.for.nonrequired"
_VALIDATE = "json.fail.invalid.schema"


class JsonSchemaConverter(RegistryConverter):
    """Converts to and from JSON in the Schema Registry's wire format. Runs on executors.

    Schemas are mapped like Confluent's JsonSchemaConverter does (see ``json_schema_write`` and ``json_schema_read``).
    Schemaless values cannot be written, because the registry requires a schema.
    """

    java_class = "io.confluent.connect.json.JsonSchemaConverter"
    schema_type = "JSON"

    @classmethod
    def config_def(cls) -> ConfigDef:
        return COMMON.define(
            ConfigKey(
                name=_DECIMALS,
                type=Type.STRING,
                default="BASE64",
                importance=Importance.LOW,
                validator=OneOf(("BASE64", "NUMERIC"), ignore_case=True),
                doc="Format in which decimals are written: BASE64 keeps all digits, NUMERIC is a JSON number.",
            ),
            flag(_ADDITIONAL, True, "Whether object schemas allow other properties than their own."),
            flag(_NON_REQUIRED, False, "Whether properties that are not required become optional fields."),
            flag(_VALIDATE, False, "Whether records are validated against their JSON Schema when they are written and read."),
        )

    def _set_options(self, values: Mapping[str, ConfigValue]) -> None:
        self._validate = bool(values[_VALIDATE])
        self._json = JsonOptions(
            numeric_decimals=str(values[_DECIMALS]).upper() == "NUMERIC",
            additional_properties=bool(values[_ADDITIONAL]),
            optional_unless_required=bool(values[_NON_REQUIRED]),
            keep_nulls=bool(values[KEEP_NULLS]),
        )

    def _serialization(self, schema: Schema | None) -> Serialization:
        if schema is None:
            raise DataError("JsonSchemaConverter cannot write schemaless values. Use JsonConverter with schemas.enable=false.")
        node = to_json_schema(schema, self._json)
        text = _dumps(node).decode()
        make = serdes.json(text, _dumps, validate=self._validate)
        payload = _payload_of(text) if self._validate else _dumps
        return Serialization(node.get("title"), writer(schema, self._json), payload, make)

    def _deserialization(self, topic: str, schema: WriterSchema) -> Deserialization:
        references = {name: json.loads(text) for name, text in schema.references}
        document = json.loads(schema.text, parse_float=Decimal)
        connect = ToConnect(document, references, self._json).schema(version=schema.version)
        convert = reader(connect, keep_nulls=self._json.keep_nulls)
        loads = _loads_decimals if holds_decimals(connect) else orjson.loads
        if not self._validate:
            return Deserialization(connect, lambda data: convert(loads(data)))
        check = _checker(json.loads(schema.text), references)

        def read(data: bytes) -> Any:
            value = loads(data)
            check(value)
            return convert(value)

        return Deserialization(connect, read)

    def _null_error(self, schema: Schema) -> str:
        if schema.default is not None:
            return ""
        return "Conversion error: null value for field that is required and has no default value"

    def _record_name(self, schema_text: str) -> str | None:
        node = json.loads(schema_text)
        return node.get("title") if isinstance(node, dict) else None


def _dumps(value: Any) -> bytes:
    return orjson.dumps(value, default=_number, option=orjson.OPT_NON_STR_KEYS)


def _number(value: Any) -> Any:
    if isinstance(value, Decimal) and value.is_finite():
        return orjson.Fragment(str(value).encode())
    raise TypeError(f"{type(value).__name__} cannot be written as JSON.")


def _loads_decimals(data: bytes) -> Any:
    return json.loads(data, parse_float=Decimal)


def _checker(document: Any, references: Mapping[str, Any]) -> Any:
    """Return a function that raises DataError for a value that does not match the JSON Schema."""
    from jsonschema import ValidationError
    from jsonschema.validators import validator_for
    from referencing import Registry, Resource
    from referencing.jsonschema import DRAFT7

    resources = [(name, Resource.from_contents(part, default_specification=DRAFT7)) for name, part in references.items()]
    validator = validator_for(document)(document, registry=Registry().with_resources(resources))

    def check(value: Any) -> None:
        try:
            validator.validate(value)
        except ValidationError as error:
            raise DataError(f"The record does not match its JSON Schema at {error.json_path}: {error.validator}.") from None

    return check


def _payload_of(text: str) -> Any:
    """Return ``_dumps`` with validation, because the serializer validates only the first record."""
    check = _checker(json.loads(text), {})

    def payload(value: Any) -> bytes:
        check(value)
        return _dumps(value)

    return payload
