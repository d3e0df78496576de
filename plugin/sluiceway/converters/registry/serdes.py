"""Wraps confluent-kafka's registry client and serializers. The only module of the converters that imports confluent-kafka.

Functions import it at the first record, on an executor. Validation of a config on the driver therefore does not need the
packages of the extra ``schema-registry``.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sluiceway.errors import MissingToolError
from sluiceway.installation import install_command

log = logging.getLogger(__name__)

_NOT_FOUND = 404

MakeSerializer = Callable[[Any, dict[str, Any]], Any]
"""Creates confluent-kafka's serializer from the registry client and the serializer's options."""


@contextlib.contextmanager
def packages() -> Iterator[None]:
    """Raise MissingToolError, which names the extra to install, instead of ImportError."""
    try:
        yield
    except ImportError as error:
        raise MissingToolError(
            f"Schema Registry converters need a Python package that is not installed ({error}). "
            f"Run: {install_command('schema-registry')}."
        ) from error


def registry_client(options: Mapping[str, object]) -> Any:
    """Return a ``SchemaRegistryClient``; raises ValueError for invalid options."""
    from confluent_kafka.schema_registry import SchemaRegistryClient

    return SchemaRegistryClient(dict(options))


def look_up_only(client: Any) -> None:
    """Make a client look schemas up where it would register them. One that is not registered gets the id 0."""
    from confluent_kafka.schema_registry import RegisteredSchema, SchemaRegistryError

    def look_up(subject_name: str, schema: Any, normalize_schemas: bool = False) -> Any:
        try:
            return client.lookup_schema(subject_name, schema, normalize_schemas)
        except SchemaRegistryError as error:
            if error.http_status_code != _NOT_FOUND:
                raise
            log.warning("Subject %s has no such schema yet. It would be registered; the bytes have the id 0 here.", subject_name)
            return RegisteredSchema(schema_id=0, guid=None, subject=subject_name, version=None, schema=schema)

    def look_up_id(subject_name: str, schema: Any, normalize_schemas: bool = False) -> Any:
        return look_up(subject_name, schema, normalize_schemas).schema_id

    client.register_schema_full_response = look_up
    client.register_schema = look_up_id


def registry_error() -> type[Exception]:
    """Return the type of errors with the registry's response: ``http_status_code`` and ``error_code``."""
    from confluent_kafka.schema_registry import SchemaRegistryError

    error: type[Exception] = SchemaRegistryError
    return error


def serialization_error() -> type[Exception]:
    """Return the type of errors for values that a serializer refuses."""
    from confluent_kafka.serialization import SerializationError

    error: type[Exception] = SerializationError
    return error


def transport_errors() -> tuple[type[Exception], ...]:
    """Return the types of connection errors. confluent-kafka uses httpx2 if it is installed, else httpx."""
    found: list[type[Exception]] = [ConnectionError, TimeoutError]
    for name in ("httpx2", "httpx"):
        with contextlib.suppress(ImportError):
            found.append(importlib.import_module(name).TransportError)
    return tuple(found)


def context(topic: str, field: str) -> Any:
    """Return the context of a serializer: the topic, and ``key`` or ``value``."""
    from confluent_kafka.serialization import MessageField, SerializationContext

    return SerializationContext(topic, MessageField.KEY if field == "key" else MessageField.VALUE)


def avro(schema: str, convert: Callable[[Any], Any] | None = None) -> MakeSerializer:
    """Return a function that creates an ``AvroSerializer``; ``convert`` is applied to what it serializes."""
    to_dict: Any = None if convert is None else lambda datum, _context: convert(datum)

    def make(client: Any, options: dict[str, Any]) -> Any:
        from confluent_kafka.schema_registry.avro import AvroSerializer

        return AvroSerializer(client, schema, to_dict, options)

    return make


def json(schema: str, encode: Callable[[Any], bytes], *, validate: bool) -> MakeSerializer:
    """Return a function that creates a ``JSONSerializer``."""

    def make(client: Any, options: dict[str, Any]) -> Any:
        from confluent_kafka.schema_registry.json_schema import JSONSerializer

        return JSONSerializer(schema, client, conf={**options, "validate": validate}, json_encode=encode)

    return make


def protobuf(message: Any) -> MakeSerializer:
    """Return a function that creates a ``ProtobufSerializer`` for a message class."""

    def make(client: Any, options: dict[str, Any]) -> Any:
        from confluent_kafka.schema_registry.protobuf import ProtobufSerializer

        return ProtobufSerializer(message, client, conf=options)

    return make


def field_meta() -> Any:
    """Return Confluent's extension of Protobuf's field options and its module."""
    from confluent_kafka.schema_registry.confluent import meta_pb2

    extension: Any = meta_pb2.field_meta  # type: ignore[attr-defined]  # generated code without annotations
    return extension, meta_pb2
