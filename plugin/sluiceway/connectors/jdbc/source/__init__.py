"""The JDBC source: reads tables and queries into topics."""

from sluiceway.connectors.jdbc.source.connector import JdbcSourceConnector

__all__ = ["JdbcSourceConnector"]
