"""What is used of confluent-kafka: its registry client and its serializers. The one module here that imports it.

Everything is imported in functions, on the executor and with the first record: configuring a converter, as validation does
on the driver, goes without the packages of the extra ``schema-registry``.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sluiceway.errors import MissingToolError

MakeSerializer = Callable[[Any, dict[str, Any]], Any]
"""Makes confluent-kafka's serializer from the client and the serializer's options."""


@contextlib.contextmanager
def packages() -> Iterator[None]:
    """Say how to get a package that is missing: raises MissingToolError for ImportError."""
    try:
        yield
    except ImportError as error:
        raise MissingToolError(
            f"Converters with a Schema Registry need more Python packages ({error}); "
            "install them with pip install 'sluiceway[schema-registry]'."
        ) from error


def registry_client(options: Mapping[str, object]) -> Any:
    """Return a ``SchemaRegistryClient``; raises ValueError for options that it refuses."""
    from confluent_kafka.schema_registry import SchemaRegistryClient

    return SchemaRegistryClient(dict(options))


def registry_error() -> type[Exception]:
    """Return the error that carries the registry's answer: ``http_status_code`` and ``error_code``."""
    from confluent_kafka.schema_registry import SchemaRegistryError

    error: type[Exception] = SchemaRegistryError
    return error


def serialization_error() -> type[Exception]:
    """Return the error for a value or bytes that a serializer refuses."""
    from confluent_kafka.serialization import SerializationError

    error: type[Exception] = SerializationError
    return error


def transport_errors() -> tuple[type[Exception], ...]:
    """Return what is raised when there is no answer; confluent-kafka takes httpx2 where it is installed, else httpx."""
    found: list[type[Exception]] = [ConnectionError, TimeoutError]
    for name in ("httpx2", "httpx"):
        with contextlib.suppress(ImportError):
            found.append(importlib.import_module(name).TransportError)
    return tuple(found)


def context(topic: str, field: str) -> Any:
    """Return what tells a serializer of the topic and of ``key`` or ``value``."""
    from confluent_kafka.serialization import SerializationContext

    return SerializationContext(topic, field)


def avro(schema: str) -> MakeSerializer:
    """Return the maker of an ``AvroSerializer``."""

    def make(client: Any, options: dict[str, Any]) -> Any:
        from confluent_kafka.schema_registry.avro import AvroSerializer

        return AvroSerializer(client, schema, conf=options)

    return make


def json(schema: str, encode: Callable[[Any], bytes], *, validate: bool) -> MakeSerializer:
    """Return the maker of a ``JSONSerializer``."""

    def make(client: Any, options: dict[str, Any]) -> Any:
        from confluent_kafka.schema_registry.json_schema import JSONSerializer

        return JSONSerializer(schema, client, conf={**options, "validate": validate}, json_encode=encode)

    return make


def protobuf(message: Any) -> MakeSerializer:
    """Return the maker of a ``ProtobufSerializer`` for a message class."""

    def make(client: Any, options: dict[str, Any]) -> Any:
        from confluent_kafka.schema_registry.protobuf import ProtobufSerializer

        return ProtobufSerializer(message, client, conf=options)

    return make


def field_meta() -> Any:
    """Return Confluent's extension of Protobuf's field options and the module that it is in: ``(extension, module)``."""
    from confluent_kafka.schema_registry.confluent import meta_pb2

    return meta_pb2.field_meta, meta_pb2
