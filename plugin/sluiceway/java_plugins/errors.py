"""Raises what Java plugins throw as Python errors of the same meaning, with the Java stack trace."""

from __future__ import annotations

import re
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


_NO_MEMORY = re.compile(r"java\.lang\.OutOfMemoryError(?:: (.*))?")
_HEAP = "-Xmx1g"
_MEMORY = {
    "Compressed class space": "-XX:CompressedClassSpaceSize=256m",
    "direct buffer memory": "-XX:MaxDirectMemorySize=1g",
    "Metaspace": "-XX:MaxMetaspaceSize=1g",
}
"""The options for kinds of memory by a part of the message of Java's error about it; any other is about the heap."""


def java_error(described: Mapping[str, Any]) -> JavaError:
    """Return the error for a Java exception as an error frame describes it."""
    classes: list[str] = described["classes"]
    kind = next((_KINDS[each] for each in classes if each in _KINDS), JavaError)
    trace: str = described["trace"]
    advice = memory_advice(trace)
    return kind(described["message"] or classes[0], classes[0], f"{trace.rstrip()}\n{advice}\n" if advice else trace)


def memory_advice(text: str) -> str:
    """Return how to give a Java process the memory that a trace or message says it lacks; empty for another error."""
    found = _NO_MEMORY.search(text)
    if found is None:
        return ""
    what = (found[1] or "").lower()
    if "native thread" in what:
        return "The system allows the process no more threads. Raise its limit of processes (ulimit -u, or the container's)."
    option = next((option for part, option in _MEMORY.items() if part.lower() in what), _HEAP)
    return f"The Java process has no memory left. Allow more in the connector's sluiceway.java.opts, such as {option}."
