"""Defines the errors that Sluiceway raises, and how Kafka Connect names them.

Class names are Kafka Connect's, with ``Error`` instead of ``Exception``. Messages say what happened, where, and what to do, and
never hold a secret. Errors can be pickled, because Spark sends them from executors to the driver.
"""

from __future__ import annotations

import traceback
from collections.abc import Sequence

TRACE_BYTES = 16 * 1024
"""The most bytes of a trace in a status: brokers refuse records of more than a megabyte."""

_MESSAGE_BYTES = 4096  # a message may hold a record's value


def shortened(text: str, most: int) -> str:
    """Return a text of at most ``most`` bytes of UTF-8: of a longer one, its start and its end."""
    data = text.encode("utf-8", "replace")
    if len(data) <= most:
        return text
    gap = f" ... ({len(data)} bytes in all) ... "
    half = (most - len(gap)) // 2
    return f"{data[:half].decode('utf-8', 'ignore')}{gap}{data[-half:].decode('utf-8', 'ignore')}"


class ConnectError(Exception):
    """Base of all errors that Connect, a connector, a converter or a transform raises (Connect's ``ConnectException``).

    A long message, which may hold a value, is shortened.
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*(shortened(each, _MESSAGE_BYTES) if isinstance(each, str) else each for each in args))


class RetriableError(ConnectError):
    """The same call may succeed later; the runtime retries it with a back-off (``RetriableException``)."""


class DataError(ConnectError):
    """A value does not match its schema, or a converter or transform cannot handle it (``DataException``)."""


class SchemaBuilderError(DataError):
    """A schema definition is invalid (``SchemaBuilderException``)."""


class SerializationError(ConnectError):
    """A serializer cannot be configured with its options (Kafka's ``SerializationException``)."""

    java_class = "org.apache.kafka.common.errors.SerializationException"


class SchemaProjectorError(DataError):
    """A value cannot be projected onto another schema (``SchemaProjectorException``)."""


class NotFoundError(ConnectError):
    """The named connector, task or plugin does not exist (REST: 404)."""


class AlreadyExistsError(ConnectError):
    """A connector with that name already exists (REST: 409)."""


class BadRequestError(ConnectError):
    """The request is invalid (REST: 400)."""


class ConflictError(ConnectError):
    """The request conflicts with the current state or with a concurrent writer; a retry may succeed (REST: 409)."""


class ConfigError(ConnectError):
    """A configuration is invalid (Kafka's ``ConfigException``).

    ``ConfigError("text")`` has the message ``text``. ``ConfigError(name, value, "why")`` has Kafka's message
    ``Invalid value <value> for configuration <name>: why``. Never pass a secret as value.
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


class TemporaryProblem(str):
    """The text of a problem of a config that may go away by itself, such as a server that cannot be reached."""

    __slots__ = ()


class InvalidConfigError(BadRequestError):
    """Validation refused a connector's config; ``errors`` has one message for each problem (REST: 400).

    ``advice`` is text for the end of the message.
    """

    def __init__(self, errors: Sequence[str], advice: str = "") -> None:
        super().__init__(tuple(errors), advice)
        self.errors = tuple(errors)
        self._advice = advice

    @property
    def temporary(self) -> bool:
        """Whether the same config may be valid later."""
        return all(isinstance(error, TemporaryProblem) for error in self.errors)

    def __str__(self) -> str:
        problems = "".join(f"\n{error}" for error in self.errors)
        text = (
            f"Connector configuration is invalid and contains the following {len(self.errors)} error(s):{problems}\n"
            "You can also find the above list of errors at the endpoint `/connector-plugins/{connectorType}/config/validate`"
        )
        return f"{text}\n{self._advice}" if self._advice else text


class InternalTopicError(ConnectError):
    """An internal topic is missing, not compacted, or has the wrong number of partitions. Nothing was read or written."""


class FencedError(ConnectError):
    """Another driver or writer has taken over. This one must stop without writing anything more."""


class KafkaClientError(ConnectError):
    """A Kafka client call failed; ``code`` is librdkafka's error name, such as ``_MSG_TIMED_OUT``."""

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message, code)
        self.code = code

    def __str__(self) -> str:
        return str(self.args[0])


class MissingToolError(ConnectError):
    """A requirement outside Python is missing, such as Java, a download or a free port; the message says how to get it."""


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
    """Return the name of the Java class that Kafka Connect would have thrown, or else the Python class's name.

    An error class can name its Java class in an attribute ``java_class``.
    """
    own = getattr(error, "java_class", None)
    if isinstance(own, str):
        return own
    found = next((_JAVA_NAMES[kind] for kind in type(error).__mro__ if kind in _JAVA_NAMES), None)
    return found or f"{type(error).__module__}.{type(error).__qualname__}"


def java_text_of(error: BaseException) -> str:
    """Return an error in the form of Java's ``toString``: ``org.apache.kafka.connect.errors.DataException: the message``."""
    return f"{java_name(error)}: {error}" if str(error) else java_name(error)


def trace_of(error: BaseException) -> str:
    """Return the ``trace`` of a status record for an error: its type and message first, as in Java, then the traceback.

    It has ``TRACE_BYTES`` at most.

    An exception of a Java plugin has its own trace in an attribute ``java_trace``, which replaces the traceback, or follows
    that of the error that it caused.
    """
    if isinstance(own := getattr(error, "java_trace", None), str) and hasattr(error, "java_class"):
        return shortened(own, TRACE_BYTES)
    kind = type(error)
    frames = "".join(traceback.format_exception(kind, error, error.__traceback__))
    return shortened(f"{kind.__module__}.{kind.__qualname__}: {error}\n{frames}{_java_cause(error)}", TRACE_BYTES)


def _java_cause(error: BaseException | None) -> str:
    """Return the first Java trace among an error and its causes, as Java's traces show a cause."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:  # an error that is raised again may be its own cause
        seen.add(id(error))
        trace = getattr(error, "java_trace", None)
        if isinstance(trace, str) and trace:
            return f"Caused by: {trace}"
        error = error.__cause__
    return ""
