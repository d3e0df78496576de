"""The base class of the Schema Registry converters: caches, wire format and errors."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from sluiceway.api import NULL, Converter, SchemaAndValue
from sluiceway.api.columns import ColumnDecoder, ColumnEncoder, NotColumnar, RowFormReason
from sluiceway.config.definition import ConfigValue
from sluiceway.converters.registry.client import RegistryClient, Serialize, WriterSchema
from sluiceway.converters.registry.config import RegistryOptions
from sluiceway.converters.registry.serdes import MakeSerializer, packages
from sluiceway.data import Schema
from sluiceway.errors import ConnectError, DataError

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray

Decode = Callable[[bytes | None], tuple[Schema | None, Any]]

_MAGIC = b"\x00"
_PREFIX_SIZE = 5


class Serialization(NamedTuple):
    """Serializes values of a schema: with ``payload(native(value))``, or with confluent-kafka's serializer.

    If the serializer may write another record than ``payload``, only its prefix counts: ``foreign_payload`` returns the
    function that writes with a schema from the registry.
    """

    record_name: str | None
    native: Callable[[Any], Any]
    payload: Callable[[Any], bytes]
    make_serializer: MakeSerializer
    foreign_payload: Callable[[WriterSchema], Callable[[Any], bytes]] | None = None


class Deserialization(NamedTuple):
    """Deserializes the bytes after the prefix. ``schema`` is None for schemaless values, or if ``read`` returns a pair."""

    schema: Schema | None
    read: Callable[[bytes], Any]
    returns_pair: bool = False


class RegistryConverter(Converter):
    """Converts to and from a zero byte, four bytes with the schema id, and the record. Runs on executors.

    confluent-kafka's serializer writes the first record of each topic and schema, and registers or looks up the schema. If
    this package's encoder returns the same bytes after the prefix, it writes the later records with the same prefix. With a
    schema from the registry (``use.latest.version``, ``use.schema.id``), the serializer writes all records. Null stays null.
    """

    schema_type: ClassVar[str]
    schema_format: ClassVar[str | None] = None
    """The ``format`` parameter of requests for schemas."""

    def __init__(self) -> None:
        self._configured: RegistryOptions | None = None
        self._is_key = False
        self._registers = True
        self._reset()

    def for_preview(self) -> None:
        """Register no schemas. Bytes with a schema that is not registered have the id 0."""
        self._registers = False

    def _reset(self) -> None:
        self._connection: RegistryClient | None = None
        self._encoders: dict[tuple[str, Schema | None], Callable[[Any], bytes | None]] = {}
        self._decoders: dict[str, Decode] = {}

    def configure(self, config: Mapping[str, str], *, is_key: bool = False) -> None:
        values = self.config_def().parse(config)
        self._configured = RegistryOptions.of(values, is_key=is_key)
        self._is_key = is_key
        self._reset()
        self._set_options(values)

    @abc.abstractmethod
    def _set_options(self, values: Mapping[str, ConfigValue]) -> None:
        """Set the format's own options."""

    @abc.abstractmethod
    def _serialization(self, schema: Schema | None) -> Serialization:
        """Return the serialization of values of a schema. Raises DataError if the format does not support the schema."""

    @abc.abstractmethod
    def _deserialization(self, topic: str, schema: WriterSchema) -> Deserialization:
        """Return the deserialization of records of a registered schema."""

    @abc.abstractmethod
    def _record_name(self, schema_text: str) -> str | None:
        """Return the record name in a registered schema, from which subject names are derived."""

    def _column_reader(self, schema: WriterSchema, connect: Schema) -> Callable[[AnyArray], AnyArray]:
        """Return the function from the bytes after the prefix, none of them null, to an array. Raises NotColumnar, as it does."""
        raise NotColumnar(f"{type(self).__name__} reads record by record", RowFormReason.CONVERTER)

    def _column_writer(self, schema: Schema) -> Callable[[AnyArray], AnyArray]:
        """Return the function from values other than null to the bytes after the prefix. Raises NotColumnar, as it does."""
        raise NotColumnar(f"{type(self).__name__} writes record by record", RowFormReason.CONVERTER)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._reset()

    def _null_error(self, schema: Schema) -> str:
        """Return the error message for null values of a required schema; empty if null is allowed."""
        return ""

    def from_connect_data(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        return self.encoder(topic, schema)(value)

    def to_connect_data(self, topic: str, data: bytes | None) -> SchemaAndValue:
        decode = self._decoders.get(topic)
        if decode is None:
            decode = self._decoders[topic] = self.decoder(topic)
        return SchemaAndValue(*decode(data))

    def encoder(self, topic: str, schema: Schema | None) -> Callable[[Any], bytes | None]:
        key = (topic, schema)
        encode = self._encoders.get(key)
        if encode is None:
            if len(self._encoders) >= self._options.cache_size:
                self._encoders.clear()
            encode = self._encoders[key] = self._new_encoder(topic, schema)
        return encode

    def decoder(self, topic: str) -> Decode:
        deserializations: dict[bytes, Deserialization] = {}
        limit = self._options.cache_size

        def decode(data: bytes | None) -> tuple[Schema | None, Any]:
            if data is None:
                return NULL
            prefix = data[:_PREFIX_SIZE]
            deserialization = deserializations.get(prefix)
            if deserialization is None:
                if len(deserializations) >= limit:
                    deserializations.clear()
                deserialization = deserializations[prefix] = self._open(topic, prefix)
            try:
                value = deserialization.read(data[_PREFIX_SIZE:])
            except ConnectError as error:
                if isinstance(error, DataError):
                    raise DataError(f"{self._deserializing(topic, prefix)}: {error}") from error
                raise
            except Exception as error:
                message = self._deserializing(topic, prefix)
                raise DataError(f"{message}: the bytes do not match the schema ({type(error).__name__}: {error}).") from error
            return value if deserialization.returns_pair else (deserialization.schema, value)

        return decode

    def column_decoder(self, topic: str) -> ColumnDecoder | None:
        """Return the decoder; None for subclasses, which may read otherwise, and for formats without a columnar form."""
        if "_column_reader" not in vars(type(self)):
            return None
        from sluiceway.converters.registry.columns import registry_decoder

        def schema_of(prefix: bytes) -> Schema | None:
            opened = self._open(topic, prefix)
            return None if opened.returns_pair else opened.schema

        def open_reader(prefix: bytes, schema: Schema) -> Callable[[AnyArray], AnyArray]:
            return self._column_reader(self._writer_schema(topic, prefix), schema)

        return registry_decoder(schema_of, open_reader)

    def column_encoder(self, topic: str, schema: Schema | None) -> ColumnEncoder | None:
        """Return the encoder of values with this schema; None without one, and where ``column_decoder`` would be."""
        if "_column_writer" not in vars(type(self)) or schema is None or self._options.foreign_schema:
            return None
        from sluiceway.converters.registry.columns import registry_encoder

        try:
            return registry_encoder(schema, lambda value: self.encoder(topic, schema)(value), self._column_writer(schema))
        except NotColumnar:
            return None

    @property
    def _options(self) -> RegistryOptions:
        if self._configured is None:
            raise ConnectError(f"{type(self).__name__} must be configured before it is used.")
        return self._configured

    @property
    def _registry(self) -> RegistryClient:
        if self._connection is None:
            with packages():
                self._connection = RegistryClient(self._options, self.schema_type, is_key=self._is_key, registers=self._registers)
        return self._connection

    def _new_encoder(self, topic: str, schema: Schema | None) -> Callable[[Any], bytes | None]:
        with packages():
            serialization = self._serialization(schema)
        native, payload = serialization.native, serialization.payload
        keeps_prefix = not self._options.foreign_schema
        problem = "" if schema is None or schema.optional else self._null_error(schema)
        prefix = b""
        serialize: Serialize | None = None

        def encode(value: Any) -> bytes | None:
            nonlocal prefix, serialize
            if value is None:
                if problem:
                    raise DataError(f"{self._registry.serializing(topic)}: {problem}")
                return None
            try:
                datum = native(value)
                if prefix:
                    return prefix + payload(datum)
            except DataError as error:
                raise DataError(f"{self._registry.serializing(topic)}: {error}") from error
            except ConnectError:
                raise
            except Exception as error:
                raise DataError(f"{self._registry.serializing(topic)}: {type(error).__name__}: {error}") from error
            if serialize is None:
                serialize = self._serializer(topic, serialization)
            data = serialize(datum)
            if keeps_prefix:
                prefix = _prefix_of(data, payload(datum))
            return data

        return encode

    def _serializer(self, topic: str, serialization: Serialization) -> Serialize:
        """Return the function from a datum to a whole record, with the id of its schema."""
        with packages():
            serialize = self._registry.serializer(topic, serialization.record_name, serialization.make_serializer)
        foreign = serialization.foreign_payload
        if foreign is None:
            return serialize
        payloads: dict[bytes, Callable[[Any], bytes]] = {}

        def with_own_payload(datum: Any) -> bytes:
            prefix = serialize(datum)[:_PREFIX_SIZE]
            if prefix not in payloads:
                is_foreign = self._options.foreign_schema
                payloads[prefix] = foreign(self._writer_schema(topic, prefix)) if is_foreign else serialization.payload
            return prefix + payloads[prefix](datum)

        return with_own_payload

    def _deserializing(self, topic: str, prefix: bytes) -> str:
        return self._registry.deserializing(topic, int.from_bytes(prefix[1:], "big"))

    def _open(self, topic: str, prefix: bytes) -> Deserialization:
        if len(prefix) < _PREFIX_SIZE or prefix[:1] != _MAGIC:
            raise DataError(
                f"{self._registry.deserializing(topic, None)}: Unknown magic byte! The record is not in the Schema Registry's "
                "wire format. Use the converter with which it was written."
            )
        schema = self._writer_schema(topic, prefix)
        try:
            with packages(), self._registry.errors(self._deserializing(topic, prefix), topic):
                return self._deserialization(topic, schema)
        except RecursionError:
            raise DataError(f"{self._deserializing(topic, prefix)}: the schema is nested too deeply.") from None

    def _writer_schema(self, topic: str, prefix: bytes) -> WriterSchema:
        schema_id = int.from_bytes(prefix[1:], "big")
        return self._registry.writer_schema(topic, schema_id, self._record_name, self.schema_format)


def _prefix_of(data: bytes, payload: bytes) -> bytes:
    """Return the bytes before our payload in the serializer's bytes; empty if the serializer wrote another payload."""
    return data[: len(data) - len(payload)] if data.endswith(payload) and len(data) > len(payload) else b""
