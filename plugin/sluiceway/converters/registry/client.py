"""Gets and registers schemas in a Schema Registry, and maps its errors."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from sluiceway.converters.registry import serdes
from sluiceway.converters.registry.config import RECORD_NAME, TOPIC_NAME, RegistryOptions
from sluiceway.errors import ConfigError, DataError, RetriableError

Serialize = Callable[[Any], bytes]

_LABELS = {"AVRO": "Avro", "JSON": "JSON", "PROTOBUF": "Protobuf"}
_BUSY = (408, 429)
_NOT_FOUND = 404


class WriterSchema(NamedTuple):
    """A schema from the registry with its referenced schemas, each after the schemas that it references itself."""

    text: str
    type: str
    references: tuple[tuple[str, str], ...]
    version: int | None


class RegistryClient:
    """A converter's connection to the registry. confluent-kafka's client caches schemas by id and by subject.

    Without ``registers``, schemas are looked up instead of registered.
    """

    def __init__(self, options: RegistryOptions, schema_type: str, *, is_key: bool, registers: bool = True) -> None:
        self._options = options
        self._type = schema_type
        self._label = _LABELS[schema_type]
        self._field = "key" if is_key else "value"
        try:
            self._client = serdes.registry_client(options.client)
            if not registers:
                serdes.look_up_only(self._client)
        except (ValueError, TypeError, OSError) as error:  # the message may contain the URL and so a password
            raise ConfigError(
                f"The options of the Schema Registry client are invalid ({type(error).__name__}). Check the PEM files, the key's "
                "password, and that the URL contains no user if basic.auth.user.info is set."
            ) from None
        self._registry_error = serdes.registry_error()
        self._serialization_error = serdes.serialization_error()
        self._transport_errors = serdes.transport_errors()

    def close(self) -> None:
        """Close the connections."""
        self._client.__exit__(None, None, None)  # confluent-kafka has no close() before 2.16

    def serializing(self, topic: str) -> str:
        """Return the start of error messages for values that cannot be serialized."""
        return f"Failed to serialize {self._label} data from topic {topic}"

    def deserializing(self, topic: str, schema_id: int | None) -> str:
        """Return the start of error messages for bytes that cannot be deserialized."""
        schema = "" if schema_id is None else f" with schema {schema_id}"
        return f"Failed to deserialize data for topic {topic} to {self._label}{schema}"

    def subject(self, topic: str, record_name: str | None) -> str:
        """Return the subject of a schema by the configured strategy. Raises DataError if the strategy requires a record name."""
        if self._options.strategy == TOPIC_NAME:
            return f"{topic}-{self._field}"
        if not record_name:
            raise DataError(
                f"{self._options.strategy} requires a record name, but the {self._field} schema of topic {topic} has no name. "
                "Set one with the transform SetSchemaMetadata, or use TopicNameStrategy."
            )
        return record_name if self._options.strategy == RECORD_NAME else f"{topic}-{record_name}"

    def serializer(self, topic: str, record_name: str | None, make: serdes.MakeSerializer) -> Serialize:
        """Return confluent-kafka's serializer for a topic and schema. It registers or looks up the schema at the first record."""
        subject = self.subject(topic, record_name)
        options = {
            "auto.register.schemas": self._options.auto_register,
            "use.latest.version": self._options.use_latest,
            "use.schema.id": self._options.use_id,
            "normalize.schemas": self._options.normalize,
            "subject.name.strategy": lambda _context, _name: subject,
        }
        with self.errors(self.serializing(topic), topic):
            serializer = make(self._client, options)
        context = serdes.context(topic, self._field)

        def serialize(value: Any) -> bytes:
            with self.errors(self.serializing(topic), topic):
                data: bytes = serializer(value, context)
                return data

        return serialize

    def writer_schema(self, topic: str, schema_id: int, name_of: Callable[[str], str | None], form: str | None) -> WriterSchema:
        """Return the schema with this id, and its version in the record's subject (None if it is not registered there)."""
        with self.errors(self.deserializing(topic, schema_id), topic):
            schema = self._client.get_schema(schema_id, None, form)
            if schema.rule_set is not None and (schema.rule_set.domain_rules or schema.rule_set.encoding_rules):
                raise DataError(
                    f"Schema {schema_id} of topic {topic} has rules, such as encryption, which are not supported. "
                    "Remove the rules, or use ByteArrayConverter."
                )
            kind = schema.schema_type or "AVRO"
            if kind != self._type:
                raise DataError(
                    f"Schema {schema_id} of topic {topic} has type {kind}, not {self._type}. Use the converter for that type."
                )
            references = dict(self._references(schema, form))
            version = self._version(topic, schema, name_of)
            return WriterSchema(schema.schema_str, kind, tuple(references.items()), version)

    def _references(self, schema: Any, form: str | None) -> Iterator[tuple[str, str]]:
        for reference in schema.references or ():
            inner = self._client.get_version(reference.subject, reference.version, True, form).schema
            yield from self._references(inner, form)
            yield reference.name, inner.schema_str

    def _version(self, topic: str, schema: Any, name_of: Callable[[str], str | None]) -> int | None:
        try:
            name = None if self._options.strategy == TOPIC_NAME else name_of(schema.schema_str)
            subject = self.subject(topic, name)
            version: int | None = self._client.lookup_schema(subject, schema, self._options.normalize, True).version
            return version
        except DataError:
            return None
        except self._registry_error as error:
            if getattr(error, "http_status_code", None) == _NOT_FOUND:
                return None  # a copied or renamed topic, for which Confluent's converters fail
            raise

    @contextlib.contextmanager
    def errors(self, message: str, topic: str) -> Iterator[None]:
        """Map errors of the client libraries to Connect's.

        Raises RetriableError if the registry is unreachable or overloaded, ConfigError if it refuses the request, like
        Confluent's converters, and DataError for other errors of the record.
        """
        try:
            yield
        except self._registry_error as error:
            status, code = getattr(error, "http_status_code", 0), getattr(error, "error_code", 0) or 0
            if status in _BUSY or status >= 500:
                raise RetriableError(f"{message}: the Schema Registry returned {error}. The request is retried.") from error
            if code // 100 == 4:
                raise ConfigError(f"Failed to access {self._label} data from topic {topic} : {error}") from error
            raise DataError(f"{message}: the Schema Registry returned {error}.") from error
        except DataError as error:
            if str(error).startswith(message):
                raise
            raise DataError(f"{message}: {error}") from error
        except self._transport_errors as error:
            raise RetriableError(
                f"{message}: network connection error: {type(error).__name__}. The request is retried. Check schema.registry.url "
                "and that the Schema Registry runs."
            ) from error
        except (self._serialization_error, ValueError, TypeError, KeyError, LookupError, ArithmeticError) as error:
            raise DataError(f"{message}: {error or type(error).__name__}") from error
