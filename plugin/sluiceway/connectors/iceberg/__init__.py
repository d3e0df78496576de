"""The Iceberg sink, which commits records and their offsets to Iceberg tables in one transaction, and the compaction of these."""

from sluiceway.connectors.iceberg.connector import IcebergCompactionConnector, IcebergSinkConnector, TabularIcebergSinkConnector

__all__ = ["IcebergCompactionConnector", "IcebergSinkConnector", "TabularIcebergSinkConnector"]
