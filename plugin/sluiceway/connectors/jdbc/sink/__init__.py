"""JdbcSink: writes topics into tables."""

from sluiceway.connectors.jdbc.sink.connector import JdbcSinkConnector

__all__ = ["JdbcSinkConnector"]
