"""The Iceberg sink: commits records and their offsets to Iceberg tables in one transaction."""

from sluiceway.connectors.iceberg.connector import IcebergSinkConnector, TabularIcebergSinkConnector

__all__ = ["IcebergSinkConnector", "TabularIcebergSinkConnector"]
