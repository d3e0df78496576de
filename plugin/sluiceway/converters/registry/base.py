"""What the three Schema Registry converters have in common: caches, the frame before each record, errors."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

from sluiceway.api import NULL, Converter, SchemaAndValue
from sluiceway.config.definition import ConfigValue
from sluiceway.converters.registry.client import RegistryClient, Serialize, WriterSchema
from sluiceway.converters.registry.config import RegistryOptions
from sluiceway.converters.registry.serdes import MakeSerializer, packages
from sluiceway.data import Schema
from sluiceway.errors import ConnectError, DataError

Decode = Callable[[bytes | None], tuple[Schema | None, Any]]

_MAGIC = b"\x00"
_FRAME = 5


class Writing(NamedTuple):
    """How values of one schema become a format's bytes: ``payload(native(value))``, or by confluent-kafka's serializer."""

    record_name: str | None
    native: Callable[[Any], Any]
    payload: Callable[[Any], bytes]
    make_serializer: MakeSerializer


class Reading(NamedTuple):
    """How the bytes after the frame become a value. ``schema`` None: the value is schemaless, or ``read`` gives a pair."""

    schema: Schema | None
    read: Callable[[bytes], Any]
    gives_pair: bool = False


class RegistryConverter(Converter):
    """Writes a zero byte, the schema's id in four bytes, and the record. Runs on executors.

    The first record of a topic and schema goes through confluent-kafka's serializer, which registers the schema or looks it
    up. If our own encoder gives the same bytes after the frame, later records take it and keep the frame; with a schema from
    the registry (``use.latest.version``, ``use.schema.id``) all of them go through the serializer. Null is null, both ways.
    """

    schema_type: ClassVar[str]
    schema_format: ClassVar[str | None] = None
    """In which form the registry is asked for schemas."""

    def __init__(self) -> None:
        self._configured: RegistryOptions | None = None
        self._is_key = False
        self._forget()

    def _forget(self) -> None:
        self._connection: RegistryClient | None = None
        self._encoders: dict[tuple[str, Schema | None], Callable[[Any], bytes | None]] = {}
        self._decoders: dict[str, Decode] = {}

    def configure(self, config: Mapping[str, str], *, is_key: bool = False) -> None:
        values = self.config_def().parse(config)
        self._configured = RegistryOptions.of(values, is_key=is_key)
        self._is_key = is_key
        self._forget()
        self._take_options(values)

    @abc.abstractmethod
    def _take_options(self, values: Mapping[str, ConfigValue]) -> None:
        """Keep the format's own options."""

    @abc.abstractmethod
    def _writing(self, schema: Schema | None) -> Writing:
        """Return how values of a schema are written; raises DataError for a schema that the format cannot hold."""

    @abc.abstractmethod
    def _reading(self, topic: str, schema: WriterSchema) -> Reading:
        """Return how records of a registered schema are read."""

    @abc.abstractmethod
    def _record_name(self, schema_text: str) -> str | None:
        """Return the name in a registered schema that subjects are named after."""

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._forget()

    def _null_problem(self, schema: Schema) -> str:
        """Return why null cannot be written for a schema that is not optional; empty if it can."""
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
        readings: dict[bytes, Reading] = {}
        limit = self._options.cache_size

        def decode(data: bytes | None) -> tuple[Schema | None, Any]:
            if data is None:
                return NULL
            frame = data[:_FRAME]
            reading = readings.get(frame)
            if reading is None:
                if len(readings) >= limit:
                    readings.clear()
                reading = readings[frame] = self._open(topic, frame)
            try:
                value = reading.read(data[_FRAME:])
            except ConnectError as error:
                if isinstance(error, DataError):
                    raise DataError(f"{self._deserializing(topic, frame)}: {error}") from error
                raise
            except Exception as error:
                what = self._deserializing(topic, frame)
                raise DataError(f"{what}: the bytes do not fit it ({type(error).__name__}: {error}).") from error
            return value if reading.gives_pair else (reading.schema, value)

        return decode

    @property
    def _options(self) -> RegistryOptions:
        if self._configured is None:
            raise ConnectError(f"{type(self).__name__} must be configured before it is used.")
        return self._configured

    @property
    def _registry(self) -> RegistryClient:
        if self._connection is None:
            with packages():
                self._connection = RegistryClient(self._options, self.schema_type, is_key=self._is_key)
        return self._connection

    def _new_encoder(self, topic: str, schema: Schema | None) -> Callable[[Any], bytes | None]:
        with packages():
            writing = self._writing(schema)
        native, payload = writing.native, writing.payload
        keeps_frame = not self._options.foreign_schema
        problem = "" if schema is None or schema.optional else self._null_problem(schema)
        frame = b""
        serialize: Serialize | None = None

        def encode(value: Any) -> bytes | None:
            nonlocal frame, serialize
            if value is None:
                if problem:
                    raise DataError(f"{self._registry.serializing(topic)}: {problem}")
                return None
            try:
                datum = native(value)
                if frame:
                    return frame + payload(datum)
            except DataError as error:
                raise DataError(f"{self._registry.serializing(topic)}: {error}") from error
            except ConnectError:
                raise
            except Exception as error:
                raise DataError(f"{self._registry.serializing(topic)}: {type(error).__name__}: {error}") from error
            if serialize is None:
                with packages():
                    serialize = self._registry.serializer(topic, writing.record_name, writing.make_serializer)
            data = serialize(datum)
            if keeps_frame:
                frame = _frame_of(data, payload(datum))
            return data

        return encode

    def _deserializing(self, topic: str, frame: bytes) -> str:
        return self._registry.deserializing(topic, int.from_bytes(frame[1:], "big"))

    def _open(self, topic: str, frame: bytes) -> Reading:
        if len(frame) < _FRAME or frame[:1] != _MAGIC:
            raise DataError(
                f"{self._registry.deserializing(topic, None)}: Unknown magic byte! The record does not start with a Schema "
                "Registry's frame; use the converter that it was written with."
            )
        schema_id = int.from_bytes(frame[1:], "big")
        schema = self._registry.writer_schema(topic, schema_id, self._record_name, self.schema_format)
        with packages(), self._registry.errors(self._deserializing(topic, frame), topic):
            return self._reading(topic, schema)


def _frame_of(data: bytes, payload: bytes) -> bytes:
    """Return what stands before our payload in the serializer's bytes; empty if it wrote something else."""
    return data[: len(data) - len(payload)] if data.endswith(payload) and len(data) > len(payload) else b""
