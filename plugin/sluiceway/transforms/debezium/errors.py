"""Defines the errors that Debezium's transforms raise besides Kafka Connect's."""

from __future__ import annotations

from sluiceway.errors import ConnectError


class DebeziumError(ConnectError):
    """A record or config that a Debezium transform cannot process (``DebeziumException``)."""

    java_class = "io.debezium.DebeziumException"


class IllegalStateError(ConnectError):
    """A record that the config declares fatal (Java's ``IllegalStateException``)."""

    java_class = "java.lang.IllegalStateException"
