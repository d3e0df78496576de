"""JsonConverter: Connect's data as JSON, by default in an envelope with its schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import orjson
from sluiceway.api import NULL, Converter, SchemaAndValue
from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type
from sluiceway.config.validators import OneOf
from sluiceway.converters.json_envelope import EnvelopeCache
from sluiceway.converters.json_read import Read, loads, loads_exactly, reader
from sluiceway.converters.json_schema import schema_from_json, schema_to_json
from sluiceway.converters.json_write import JsonWriter, dumps, dumps_schemaless
from sluiceway.data import Schema
from sluiceway.errors import DataError

_ENABLE = "schemas.enable"
_CACHE = "schemas.cache.size"
_DECIMALS = "decimal.format"
_DEFAULTS = "replace.null.with.default"

_ENVELOPES = 16  # a topic with more schemas than this in turn is read the plain way
_CLOSING_BRACE = ord("}")
_NO_SCHEMA = b'{"schema":null,"payload":'


class JsonConverter(Converter):
    """Writes and reads JSON, ``{"schema":..,"payload":..}`` unless ``schemas.enable`` is false. Runs on executors."""

    java_class = "org.apache.kafka.connect.json.JsonConverter"

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef([
            ConfigKey(name=_ENABLE, type=Type.BOOLEAN, default=True, importance=Importance.HIGH,
                      doc="Include schemas within each of the serialized values and keys."),
            ConfigKey(name=_CACHE, type=Type.INT, default=1000, importance=Importance.HIGH,
                      doc="The maximum number of schemas that can be cached in this converter instance."),
            ConfigKey(name=_DECIMALS, type=Type.STRING, default="BASE64", importance=Importance.LOW,
                      validator=OneOf(("NUMERIC", "BASE64"), ignore_case=True),
                      doc="How decimals are written: BASE64 keeps every digit, NUMERIC is a JSON number."),
            ConfigKey(name=_DEFAULTS, type=Type.BOOLEAN, default=True, importance=Importance.LOW,
                      doc="Whether a null in a field that has a default is replaced by it."),
        ])  # fmt: skip

    def __init__(self) -> None:
        self.configure({}, is_key=False)

    def configure(self, config: Mapping[str, str], *, is_key: bool) -> None:
        values = self.config_def().parse(config)
        self._enabled = bool(values[_ENABLE])
        self._use_defaults = bool(values[_DEFAULTS])
        self._writer = JsonWriter(numeric_decimals=str(values[_DECIMALS]).upper() == "NUMERIC", use_defaults=self._use_defaults)
        self._cache_size = int(str(values[_CACHE]))
        self._encoders: dict[Schema | None, Callable[[Any], bytes | None]] = {}
        self._schemas: dict[bytes, tuple[Schema | None, Read]] = {}
        self._decoders: dict[str, Callable[[bytes | None], tuple[Schema | None, Any]]] = {}

    def from_connect_data(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        return self.encoder(topic, schema)(value)

    def encoder(self, topic: str, schema: Schema | None) -> Callable[[Any], bytes | None]:
        encode = self._encoders.get(schema)
        if encode is None:
            if len(self._encoders) >= max(self._cache_size, 1):
                self._encoders.clear()
            encode = self._encoders[schema] = self._schemaless_encoder() if schema is None else self._schema_encoder(schema)
        return encode

    def _schemaless_encoder(self) -> Callable[[Any], bytes | None]:
        writer, prefix, suffix = self._writer, *((_NO_SCHEMA, b"}") if self._enabled else (b"", b""))

        def encode(value: Any) -> bytes | None:
            return None if value is None else b"%b%b%b" % (prefix, dumps_schemaless(writer, value), suffix)

        return encode

    def _schema_encoder(self, schema: Schema) -> Callable[[Any], bytes | None]:
        write = self._writer.writer(schema)
        if not self._enabled:
            return lambda value: dumps(write(value))
        node = schema_to_json(schema, lambda inner, default: self._writer.writer(inner)(default))
        prefix = b'{"schema":%b,"payload":' % dumps(node)
        return lambda value: b"%b%b}" % (prefix, dumps(write(value)))

    def to_connect_data(self, topic: str, data: bytes | None) -> SchemaAndValue:
        decode = self._decoders.get(topic)
        if decode is None:
            decode = self._decoders[topic] = self.decoder(topic)
        return SchemaAndValue(*decode(data))

    def decoder(self, topic: str) -> Callable[[bytes | None], tuple[Schema | None, Any]]:
        if not self._enabled:
            return lambda data: (None, loads(data) if data and not data.isspace() else None)
        cache = EnvelopeCache(min(self._cache_size, _ENVELOPES))
        newest = None

        def decode(data: bytes | None) -> tuple[Schema | None, Any]:
            nonlocal newest
            if data is None:
                return NULL
            if newest is None or not data.startswith(newest[0]):
                newest = cache.find(data)
            if newest is not None and data[-1] == _CLOSING_BRACE:
                prefix, schema, read = newest
                try:
                    return schema, read(loads_exactly(data[len(prefix) : -1]))
                except ValueError:  # not the payload alone: the plain way finds out what it is
                    pass
            return self._decode_plainly(data, cache)

        return decode

    def _decode_plainly(self, data: bytes, cache: EnvelopeCache) -> tuple[Schema | None, Any]:
        """Take the document apart member by member, and remember its start for the next ones."""
        document = loads(data)
        if not isinstance(document, dict) or document.keys() != {"schema", "payload"}:
            raise DataError(
                'JsonConverter with schemas.enable requires "schema" and "payload" fields and may not contain additional '
                "fields. If you are trying to deserialize plain JSON data, set schemas.enable=false in your converter "
                "configuration."
            )
        schema, read = self._schema(document["schema"])
        cache.learn(data, schema, read)
        return schema, read(document["payload"])

    def _schema(self, node: Any) -> tuple[Schema | None, Read]:
        key = orjson.dumps(node)
        known = self._schemas.get(key)
        if known is None:
            schema = schema_from_json(node, lambda inner, default: reader(inner)(default))
            if len(self._schemas) >= max(self._cache_size, 1):
                self._schemas.clear()
            known = self._schemas[key] = schema, reader(schema, use_defaults=self._use_defaults)
        return known
