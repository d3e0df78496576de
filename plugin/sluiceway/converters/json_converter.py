"""JsonConverter: Connect's data as JSON, by default in an envelope with the schema."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from sluiceway.api import NULL, Converter, JsonLayout, SchemaAndValue
from sluiceway.api.columns import ColumnDecoder, ColumnEncoder
from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type, Width
from sluiceway.config.validators import OneOf
from sluiceway.converters.config import converter_config_def, parsed_options
from sluiceway.converters.json.envelope import Envelope, EnvelopeCache
from sluiceway.converters.json.fast_reader import Unusual, fast_reader
from sluiceway.converters.json.fast_writer import fast_writer
from sluiceway.converters.json.parser import MISSING, parse, parse_schemaless
from sluiceway.converters.json.printer import dumps, encode_text
from sluiceway.converters.json.reader import Read, read_schemaless, reader
from sluiceway.converters.json.writer import JsonWriter, dump_lines, dumps_schemaless
from sluiceway.data import Schema
from sluiceway.data.schema_json import schema_from_json, schema_to_json
from sluiceway.errors import DataError

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray

_ENABLE = "schemas.enable"
_CACHE = "schemas.cache.size"
_CONTENT = "schema.content"
_DECIMALS = "decimal.format"
_DEFAULTS = "replace.null.with.default"

_MAX_ENVELOPES = 64  # more prefixes would cost more to compare than a full parse
_CLOSING_BRACE = ord("}")
_NO_SCHEMA = b'{"schema":null,"payload":'


class _Reader(NamedTuple):
    """The readers for payloads of a schema: ``exact`` for nodes; ``fast`` for bytes, which may raise ValueError or Unusual."""

    schema: Schema | None
    exact: Read
    fast: Callable[[bytes], Any]


class JsonConverter(Converter):
    """Converts to and from ``{"schema":..,"payload":..}``, or only the payload if ``schemas.enable=false``. Runs on executors."""

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
                doc="Whether each message contains its schema beside the payload; false: only the payload.",
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
                doc="Maximum number of cached schemas.",
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
                doc="Schema, as JSON, of all messages, which then contain only the payload. Used only for reading, with "
                "schemas.enable=true.",
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
                doc="Format in which decimals are written: BASE64 keeps the scale, NUMERIC is a JSON number. Case is ignored.",
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
                doc="Whether null in a field that has a default value is replaced by the default.",
            ),
        )

    def __init__(self) -> None:
        self.configure({})

    def configure(self, config: Mapping[str, str], *, is_key: bool = False) -> None:
        """Set the options. Raises ConfigError, and DataError for an invalid ``schema.content``."""
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

    def schemaless_lines(self, values: Sequence[Any]) -> bytes:
        """Return the payloads of values without a schema, each with a line feed: faster than to encode them one by one."""
        return dump_lines(self._writer, values)

    def _schema_encoder(self, schema: Schema) -> Callable[[Any], bytes | None]:
        write = fast_writer(self._writer, schema)
        if not self._enabled:
            return lambda value: dumps(write(value))
        prefix, suffix = self._envelope_of(schema)
        return lambda value: b"%b%b%b" % (prefix, dumps(write(value)), suffix)

    def column_encoder(self, topic: str, schema: Schema | None) -> ColumnEncoder | None:
        """Return the encoder of values with this schema; None without one, and for subclasses, which may write otherwise."""
        if type(self) is not JsonConverter or schema is None:
            return None
        from sluiceway.converters.json.column_writer import column_writer

        try:
            return column_writer(self._writer, schema, *self._envelope_of(schema))
        except DataError:  # the row form reports a schema that cannot be written
            return None

    def json_layout(self, schema: Schema) -> JsonLayout | None:
        """Return how values are written; None for subclasses, which may differ, and for schemas that cannot be written."""
        if type(self) is not JsonConverter:
            return None
        try:
            prefix, suffix = self._envelope_of(schema)
        except DataError:  # the encoder reports it
            return None
        return JsonLayout(prefix, suffix, encode_text, self._text_of, not self._numeric)

    def _text_of(self, schema: Schema) -> Callable[[Any], str]:
        write = fast_writer(self._writer, schema)
        return lambda value: dumps(write(value)).decode()

    def _envelope_of(self, schema: Schema) -> tuple[bytes, bytes]:
        """Return what stands before and after the payloads of a schema."""
        if not self._enabled:
            return b"", b""
        node = schema_to_json(schema, lambda inner, default: self._writer.writer(inner)(default))
        return b'{"schema":%b,"payload":' % dumps(node), b"}"

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
        cache = EnvelopeCache(min(self._cache_size, _MAX_ENVELOPES))
        newest: Envelope | None = None

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
                except (ValueError, Unusual):  # not only a payload, or an unusual one: parse it completely
                    pass
            return self._decode_document(data, cache)

        return decode

    def column_decoder(self, topic: str) -> ColumnDecoder | None:
        """Return the columnar form; None for subclasses, which may read otherwise."""
        if type(self) is not JsonConverter:
            return None
        if not self._enabled:
            from sluiceway.converters.json.schemaless_columns import schemaless_decoder

            return schemaless_decoder(lambda data: _decode_schemaless(data)[1])
        from sluiceway.converters.column_runs import RunDecoder
        from sluiceway.converters.json.column_reader import column_reader

        def open_reader(_prefix: bytes, schema: Schema) -> Callable[[AnyArray], AnyArray]:
            return column_reader(schema, use_defaults=self._use_defaults)

        if self._content is not None:
            known = b"", self._content.schema
            return RunDecoder(lambda _: known, open_reader)
        cache = EnvelopeCache(min(self._cache_size, _MAX_ENVELOPES))
        return RunDecoder(lambda data: self._find_envelope(data, cache), open_reader, suffix=b"}")

    def _find_envelope(self, data: bytes, cache: EnvelopeCache) -> tuple[bytes, Schema | None] | None:
        """Return the prefix and schema of a message, None if it has none that can be cached."""
        envelope = cache.find(data)
        if envelope is None:
            try:
                self._decode_document(data, cache)
            except DataError:
                return None
            envelope = cache.find(data)
        return None if envelope is None else (envelope.prefix, envelope.schema)

    def _decode_document(self, data: bytes, cache: EnvelopeCache) -> tuple[Schema | None, Any]:
        """Parse the complete document, and cache its envelope."""
        document = parse(data)
        if not isinstance(document, dict) or document.keys() != {"schema", "payload"}:
            raise DataError(
                'JsonConverter with schemas.enable requires "schema" and "payload" fields and may not contain additional '
                "fields. If you are trying to deserialize plain JSON data, set schemas.enable=false in your converter "
                "configuration."
            )
        schema, read, read_fast = self._reader(document["schema"])
        if cache.find(data) is None:
            cache.add(data, schema, read_fast)
        return schema, read(document["payload"])

    def _reader(self, node: Any) -> _Reader:
        """Return the readers for a schema, given as an exact node."""
        key = json.dumps(node, default=str)
        known = self._readers.get(key)
        if known is None:
            schema = schema_from_json(node, lambda inner, default: self._exact_reader(inner)(default))
            if len(self._readers) >= max(self._cache_size, 1):
                self._readers.clear()
            known = self._readers[key] = _Reader(schema, self._exact_reader(schema), self._fast_reader(schema))
        return known

    def _exact_reader(self, schema: Schema | None) -> Read:
        return reader(schema, use_defaults=self._use_defaults)

    def _fast_reader(self, schema: Schema | None) -> Callable[[bytes], Any]:
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
    """Return the decoder for payloads of one schema without an envelope."""
    schema, read, read_fast = content

    def decode(data: bytes | None) -> tuple[Schema | None, Any]:
        if data is None:
            return NULL
        try:
            return schema, read_fast(data)
        except (ValueError, Unusual):
            return schema, read(parse(data))

    return decode
