"""Defines the errors that Debezium's transforms raise besides Kafka Connect's."""

from __future__ import annotations

from sluiceway.errors import ConfigError, ConnectError


class DebeziumError(ConnectError):
    """A record or config that a Debezium transform cannot process (``DebeziumException``)."""

    java_class = "io.debezium.DebeziumException"


class InvalidOptionsError(ConfigError):
    """Options that Debezium refuses with a ``ConnectException``, after it logged why."""

    java_class = "org.apache.kafka.connect.errors.ConnectException"


class IllegalStateError(ConnectError):
    """A record that the config declares fatal (Java's ``IllegalStateException``)."""

    java_class = "java.lang.IllegalStateException"
