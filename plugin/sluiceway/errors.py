"""Every error that Sluiceway raises on purpose, in one small tree.

The names are Kafka Connect's with ``Exception`` read as ``Error``. An error says what went wrong, where, and what to do;
it survives pickling, because Spark carries it from an executor to the driver; and it never holds a secret.
"""

from __future__ import annotations

import traceback
from collections.abc import Sequence


class ConnectError(Exception):
    """Base of all errors that Connect, a connector, a converter or a transform raises (Connect's ``ConnectException``)."""


class RetriableError(ConnectError):
    """The same call may succeed later; the runtime tries it again with back-off (``RetriableException``)."""


class DataError(ConnectError):
    """A value does not fit its schema, or a converter or transform cannot take it (``DataException``)."""


class SchemaBuilderError(DataError):
    """A schema was built wrongly (``SchemaBuilderException``)."""


class SerializationError(ConnectError):
    """A serializer cannot be set up as its options say (Kafka's ``SerializationException``)."""

    java_class = "org.apache.kafka.common.errors.SerializationException"


class SchemaProjectorError(DataError):
    """A value cannot be projected onto another schema (``SchemaProjectorException``)."""


class NotFoundError(ConnectError):
    """The named connector, task or plugin does not exist (REST: 404)."""


class AlreadyExistsError(ConnectError):
    """A connector of that name exists already (REST: 409)."""


class BadRequestError(ConnectError):
    """The request cannot be carried out as it stands (REST: 400)."""


class ConflictError(ConnectError):
    """The request clashes with the present state, or another writer got in between; try again (REST: 409)."""


class ConfigError(ConnectError):
    """A configuration cannot be used (Kafka's ``ConfigException``).

    ``ConfigError("text")`` carries a plain message; ``ConfigError(name, value, "why")`` reads
    ``Invalid value <value> for configuration <name>: why`` as Kafka writes it. Never pass a secret as value.
    """

    def __init__(self, name_or_message: str, value: object = None, message: str | None = None) -> None:
        super().__init__(name_or_message, value, message)
        self.name = name_or_message if message is not None else None
        self.value = value
        self.message = message

    def __str__(self) -> str:
        if self.message is None:
            return str(self.args[0])
        value = "null" if self.value is None else self.value
        return f"Invalid value {value} for configuration {self.name}: {self.message}"


class InvalidConfigError(BadRequestError):
    """A connector's config was refused; ``errors`` holds one text for each finding (REST: 400)."""

    def __init__(self, errors: Sequence[str]) -> None:
        super().__init__(tuple(errors))
        self.errors = tuple(errors)

    def __str__(self) -> str:
        findings = "".join(f"\n{error}" for error in self.errors)
        return (
            f"Connector configuration is invalid and contains the following {len(self.errors)} error(s):{findings}\n"
            "You can also find the above list of errors at the endpoint `/connector-plugins/{connectorType}/config/validate`"
        )


class InternalTopicError(ConnectError):
    """An internal topic is missing, not compacted, or has the wrong number of partitions; nothing was read or written."""


class FencedError(ConnectError):
    """A newer driver or writer has taken over; this one must stop and write nothing more."""


class KafkaClientError(ConnectError):
    """A Kafka client call failed; ``code`` is librdkafka's error name, such as ``_MSG_TIMED_OUT``."""

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message, code)
        self.code = code

    def __str__(self) -> str:
        return str(self.args[0])


class SlotsError(ConnectError):
    """The Spark application has fewer slots than the tasks need; they would wait for ever in silence."""


class MissingToolError(ConnectError):
    """Something outside Python is missing (Java, a download, a free port); the message says how to get it."""


_JAVA_NAMES = {
    ConfigError: "org.apache.kafka.common.config.ConfigException",
    SchemaBuilderError: "org.apache.kafka.connect.errors.SchemaBuilderException",
    SchemaProjectorError: "org.apache.kafka.connect.errors.SchemaProjectorException",
    DataError: "org.apache.kafka.connect.errors.DataException",
    NotFoundError: "org.apache.kafka.connect.errors.NotFoundException",
    AlreadyExistsError: "org.apache.kafka.connect.errors.AlreadyExistsException",
    BadRequestError: "org.apache.kafka.connect.runtime.rest.errors.BadRequestException",
    RetriableError: "org.apache.kafka.connect.errors.RetriableException",
    ConnectError: "org.apache.kafka.connect.errors.ConnectException",
    ValueError: "java.lang.IllegalArgumentException",
    TypeError: "java.lang.NullPointerException",
    IndexError: "java.lang.IndexOutOfBoundsException",
}


def java_name(error: BaseException) -> str:
    """Return the name of the Java class that Kafka Connect would have raised; errors of others keep their Python names.

    An error class may say itself with an attribute ``java_class``.
    """
    own = getattr(error, "java_class", None)
    if isinstance(own, str):
        return own
    found = next((_JAVA_NAMES[kind] for kind in type(error).__mro__ if kind in _JAVA_NAMES), None)
    return found or f"{type(error).__module__}.{type(error).__qualname__}"


def java_text_of(error: BaseException) -> str:
    """Return an error as Java's ``toString`` has it: ``org.apache.kafka.connect.errors.DataException: the message``."""
    return f"{java_name(error)}: {error}" if str(error) else java_name(error)


def trace_of(error: BaseException) -> str:
    """Return an error as a status record's ``trace``: its type and message first, as in Java, then where it happened."""
    kind = type(error)
    frames = "".join(traceback.format_exception(kind, error, error.__traceback__))
    return f"{kind.__module__}.{kind.__qualname__}: {error}\n{frames}"
