"""Raises what Java plugins throw as Python errors of the same meaning, with the Java stack trace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sluiceway.errors import ConfigError, ConnectError, DataError, RetriableError


class JavaError(ConnectError):
    """An exception of a Java plugin. ``java_class`` is its class, ``java_trace`` its stack trace."""

    def __init__(self, message: str, java_class: str, java_trace: str) -> None:
        super().__init__(message, java_class, java_trace)
        self.java_class = java_class
        self.java_trace = java_trace

    def __str__(self) -> str:
        return str(self.args[0])


class JavaRetriableError(JavaError, RetriableError):
    """A Java ``RetriableException``."""


class JavaDataError(JavaError, DataError):
    """A Java ``DataException``."""


class JavaConfigError(JavaError, ConfigError):
    """A Java ``ConfigException``."""

    name = None
    message = None


class JavaProcessError(ConnectError):
    """The Java process of a plugin ended, or could not start. ``java_trace`` has what is known about the cause, if anything."""

    def __init__(self, message: str, java_trace: str = "") -> None:
        super().__init__(message, java_trace)
        self.java_trace = java_trace

    def __str__(self) -> str:
        return str(self.args[0])


_KINDS: dict[str, type[JavaError]] = {
    "org.apache.kafka.connect.errors.RetriableException": JavaRetriableError,
    "org.apache.kafka.common.errors.RetriableException": JavaRetriableError,
    "org.apache.kafka.connect.errors.DataException": JavaDataError,
    "org.apache.kafka.common.config.ConfigException": JavaConfigError,
}


def java_error(described: Mapping[str, Any]) -> JavaError:
    """Return the error for a Java exception as an error frame describes it."""
    classes: list[str] = described["classes"]
    kind = next((_KINDS[each] for each in classes if each in _KINDS), JavaError)
    return kind(described["message"] or classes[0], classes[0], described["trace"])
