"""The JDBC sink under the configuration of Debezium's JDBC sink, change events included."""

from sluiceway.connectors.jdbc.debezium.connector import DebeziumJdbcSinkConnector

__all__ = ["DebeziumJdbcSinkConnector"]
