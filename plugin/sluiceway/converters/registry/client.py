"""The Schema Registry as the converters use it: subjects, schemas by id, and the registry's errors as ours."""

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
    """A schema that the registry returned: its text, its type, and the referenced schemas, each after those it needs."""

    text: str
    type: str
    references: tuple[tuple[str, str], ...]
    version: int | None


class RegistryClient:
    """One converter's connection to the registry. Answers are cached by id and by (subject, schema) in the client."""

    def __init__(self, options: RegistryOptions, schema_type: str, *, is_key: bool) -> None:
        self._options = options
        self._type = schema_type
        self._label = _LABELS[schema_type]
        self._field = "key" if is_key else "value"
        try:
            self._client = serdes.registry_client(options.client)
        except (ValueError, TypeError, OSError) as error:  # the text may hold the URL and so a password
            raise ConfigError(
                f"The Schema Registry's options cannot be used ({type(error).__name__}); check the PEM files, "
                "that the key's password fits, and that the URL holds no user beside basic.auth.user.info."
            ) from None
        self._registry_error = serdes.registry_error()
        self._serialization_error = serdes.serialization_error()
        self._transport_errors = serdes.transport_errors()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def serializing(self, topic: str) -> str:
        """Return the start of the message for a value that cannot be written."""
        return f"Failed to serialize {self._label} data from topic {topic}"

    def deserializing(self, topic: str, schema_id: int | None) -> str:
        """Return the start of the message for bytes that cannot be read."""
        schema = "" if schema_id is None else f" with schema {schema_id}"
        return f"Failed to deserialize data for topic {topic} to {self._label}{schema}"

    def subject(self, topic: str, record_name: str | None) -> str:
        """Return the subject of a schema by the configured strategy; raises DataError where that needs a name."""
        if self._options.strategy == TOPIC_NAME:
            return f"{topic}-{self._field}"
        if not record_name:
            raise DataError(
                f"{self._options.strategy} names the subject after the record, but the {self._field} schema of topic {topic} "
                "has no name. Name it (transform SetSchemaMetadata) or use TopicNameStrategy."
            )
        return record_name if self._options.strategy == RECORD_NAME else f"{topic}-{record_name}"

    def serializer(self, topic: str, record_name: str | None, make: serdes.MakeSerializer) -> Serialize:
        """Return confluent-kafka's serializer for one topic and schema; it registers or looks up at the first record."""
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
        """Return the schema of an id with its version in the record's subject (None if it is not registered there)."""
        with self.errors(self.deserializing(topic, schema_id), topic):
            schema = self._client.get_schema(schema_id, None, form)
            if schema.rule_set is not None and (schema.rule_set.domain_rules or schema.rule_set.encoding_rules):
                raise DataError(
                    f"Schema {schema_id} of topic {topic} has rules, such as encryption, which are not supported; "
                    "read the topic as bytes, or remove the rules."
                )
            kind = schema.schema_type or "AVRO"
            if kind != self._type:
                raise DataError(
                    f"Schema {schema_id} of topic {topic} is of type {kind}, not {self._type}; use the converter of that type."
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
                return None  # a copied or renamed topic; Confluent's converters fail here
            raise

    @contextlib.contextmanager
    def errors(self, what: str, topic: str) -> Iterator[None]:
        """Turn the libraries' errors into ours: RetriableError for a registry out of reach or busy, ConfigError for one that
        refuses (as Confluent's do), DataError for anything else that has to do with the record."""
        try:
            yield
        except self._registry_error as error:
            status, code = getattr(error, "http_status_code", 0), getattr(error, "error_code", 0) or 0
            if status in _BUSY or status >= 500:
                raise RetriableError(f"{what}: the Schema Registry answered {error}. It is tried again.") from error
            if code // 100 == 4:
                raise ConfigError(f"Failed to access {self._label} data from topic {topic} : {error}") from error
            raise DataError(f"{what}: the Schema Registry answered {error}.") from error
        except DataError as error:
            if str(error).startswith(what):
                raise
            raise DataError(f"{what}: {error}") from error
        except self._transport_errors as error:
            raise RetriableError(
                f"{what}: network connection error: {type(error).__name__}. Check schema.registry.url and that the Schema "
                "Registry runs; it is tried again."
            ) from error
        except (self._serialization_error, ValueError, TypeError, KeyError, LookupError, ArithmeticError) as error:
            raise DataError(f"{what}: {error or type(error).__name__}") from error
