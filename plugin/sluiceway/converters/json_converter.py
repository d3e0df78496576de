"""JsonConverter: Connect's data as JSON, by default in an envelope with its schema."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from sluiceway.api import NULL, Converter, SchemaAndValue
from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type, Width
from sluiceway.config.validators import OneOf
from sluiceway.converters.config import converter_config_def, parsed_options
from sluiceway.converters.json.envelope import EnvelopeCache
from sluiceway.converters.json.fast_reader import Unusual, fast_reader
from sluiceway.converters.json.fast_writer import fast_writer
from sluiceway.converters.json.parser import MISSING, parse, parse_schemaless
from sluiceway.converters.json.printer import dumps
from sluiceway.converters.json.reader import Read, read_schemaless, reader
from sluiceway.converters.json.schema import schema_from_json, schema_to_json
from sluiceway.converters.json.writer import JsonWriter, dumps_schemaless
from sluiceway.data import Schema
from sluiceway.errors import DataError

_ENABLE = "schemas.enable"
_CACHE = "schemas.cache.size"
_CONTENT = "schema.content"
_DECIMALS = "decimal.format"
_DEFAULTS = "replace.null.with.default"

_ENVELOPES = 64  # a topic with more schemas than this in turn is read the plain way
_CLOSING_BRACE = ord("}")
_NO_SCHEMA = b'{"schema":null,"payload":'


class _Reader(NamedTuple):
    """How payloads of a schema are read: exact nodes, and bytes the quick way (which raises ValueError or Unusual)."""

    schema: Schema | None
    exact: Read
    quick: Callable[[bytes], Any]


class JsonConverter(Converter):
    """Writes and reads JSON, ``{"schema":..,"payload":..}`` unless ``schemas.enable`` is false. Runs on executors."""

    java_class = "org.apache.kafka.connect.json.JsonConverter"

    @classmethod
    def config_def(cls) -> ConfigDef:
        return converter_config_def(
            ConfigKey(
                name=_ENABLE,
                type=Type.BOOLEAN,
                default=True,
                importance=Importance.HIGH,
                width=Width.MEDIUM,
                group="Schemas",
                order_in_group=0,
                display_name="Enable Schemas",
                doc="Whether each message holds its schema beside its payload; if not, it is the bare payload.",
            ),
            ConfigKey(
                name=_CACHE,
                type=Type.INT,
                default=1000,
                importance=Importance.HIGH,
                width=Width.MEDIUM,
                group="Schemas",
                order_in_group=1,
                display_name="Schema Cache Size",
                doc="How many schemas the converter remembers, to spare itself work.",
            ),
            ConfigKey(
                name=_CONTENT,
                type=Type.STRING,
                default=None,
                importance=Importance.HIGH,
                width=Width.MEDIUM,
                group="Schemas",
                order_in_group=2,
                display_name="Schema Content",
                doc="A schema, as JSON, that all messages are read with: they then hold the bare payload. Only for "
                "reading, and only with schemas.enable.",
            ),
            ConfigKey(
                name=_DECIMALS,
                type=Type.STRING,
                default="BASE64",
                importance=Importance.LOW,
                width=Width.MEDIUM,
                group="Serialization",
                order_in_group=0,
                display_name="Decimal Format",
                validator=OneOf(("NUMERIC", "BASE64"), ignore_case=True),
                doc="How decimals are written: BASE64 keeps the scale, NUMERIC is a JSON number. Case is ignored.",
            ),
            ConfigKey(
                name=_DEFAULTS,
                type=Type.BOOLEAN,
                default=True,
                importance=Importance.LOW,
                width=Width.MEDIUM,
                group="Serialization",
                order_in_group=1,
                display_name="Replace null with default",
                doc="Whether a null in a field that has a default is replaced by it.",
            ),
        )

    def __init__(self) -> None:
        self.configure({})

    def configure(self, config: Mapping[str, str], *, is_key: bool = False) -> None:
        """Take the options. Raises ConfigError, and DataError for a ``schema.content`` that is no schema."""
        values = parsed_options(self.config_def(), config, is_key=is_key)
        self._enabled = bool(values[_ENABLE])
        self._numeric = str(values[_DECIMALS]).upper() == "NUMERIC"
        self._use_defaults = bool(values[_DEFAULTS])
        self._writer = JsonWriter(numeric_decimals=self._numeric, use_defaults=self._use_defaults)
        self._cache_size = int(str(values[_CACHE]))
        self._encoders: dict[Schema | None, Callable[[Any], bytes | None]] = {}
        self._readers: dict[str, _Reader] = {}
        self._decoders: dict[str, Callable[[bytes | None], tuple[Schema | None, Any]]] = {}
        self._content = self._schema_content(values[_CONTENT])

    def _schema_content(self, text: object) -> _Reader | None:
        if not text:
            return None
        try:
            node = parse(str(text).encode("utf-8", "surrogatepass"))
        except DataError as error:
            raise DataError("Failed to parse schema in converter config due to serialization error: ") from error
        return None if node is None or node is MISSING else self._reader(node)

    # --- writing ---

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
        write = fast_writer(self._writer, schema)
        if not self._enabled:
            return lambda value: dumps(write(value))
        node = schema_to_json(schema, lambda inner, default: self._writer.writer(inner)(default))
        prefix = b'{"schema":%b,"payload":' % dumps(node)
        return lambda value: b"%b%b}" % (prefix, dumps(write(value)))

    # --- reading ---

    def to_connect_data(self, topic: str, data: bytes | None) -> SchemaAndValue:
        decode = self._decoders.get(topic)
        if decode is None:
            decode = self._decoders[topic] = self.decoder(topic)
        return SchemaAndValue(*decode(data))

    def decoder(self, topic: str) -> Callable[[bytes | None], tuple[Schema | None, Any]]:
        if not self._enabled:
            return _decode_schemaless
        return self._envelope_decoder() if self._content is None else _bare_decoder(self._content)

    def _envelope_decoder(self) -> Callable[[bytes | None], tuple[Schema | None, Any]]:
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
                    return schema, read(data[len(prefix) : -1])
                except (ValueError, Unusual):  # not the payload alone, or not as usual: the plain way finds out what it is
                    pass
            return self._decode_plainly(data, cache)

        return decode

    def _decode_plainly(self, data: bytes, cache: EnvelopeCache) -> tuple[Schema | None, Any]:
        """Take the document apart member by member, and remember its start for the next ones."""
        document = parse(data)
        if not isinstance(document, dict) or document.keys() != {"schema", "payload"}:
            raise DataError(
                'JsonConverter with schemas.enable requires "schema" and "payload" fields and may not contain additional '
                "fields. If you are trying to deserialize plain JSON data, set schemas.enable=false in your converter "
                "configuration."
            )
        schema, read, quick = self._reader(document["schema"])
        if cache.find(data) is None:
            cache.learn(data, schema, quick)
        return schema, read(document["payload"])

    def _reader(self, node: Any) -> _Reader:
        """Return how to read payloads of a schema given as an exact node."""
        key = json.dumps(node, default=str)
        known = self._readers.get(key)
        if known is None:
            schema = schema_from_json(node, lambda inner, default: self._plain_reader(inner)(default))
            if len(self._readers) >= max(self._cache_size, 1):
                self._readers.clear()
            known = self._readers[key] = _Reader(schema, self._plain_reader(schema), self._quick_reader(schema))
        return known

    def _plain_reader(self, schema: Schema | None) -> Read:
        return reader(schema, use_defaults=self._use_defaults)

    def _quick_reader(self, schema: Schema | None) -> Callable[[bytes], Any]:
        if schema is None:
            return parse_schemaless
        return fast_reader(schema, use_defaults=self._use_defaults)


def _decode_schemaless(data: bytes | None) -> tuple[Schema | None, Any]:
    if data is None:
        return NULL
    try:
        return None, parse_schemaless(data)
    except ValueError:
        return None, read_schemaless(parse(data))


def _bare_decoder(content: _Reader) -> Callable[[bytes | None], tuple[Schema | None, Any]]:
    """Return the decoder for payloads without an envelope, all of one schema."""
    schema, read, quick = content

    def decode(data: bytes | None) -> tuple[Schema | None, Any]:
        if data is None:
            return NULL
        try:
            return schema, quick(data)
        except (ValueError, Unusual):
            return schema, read(parse(data))

    return decode
