"""The JDBC sink: writes records to tables of a database."""

from sluiceway.connectors.jdbc.sink.connector import JdbcSinkConnector

__all__ = ["JdbcSinkConnector"]
