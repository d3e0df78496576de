"""The Iceberg sink, which commits records and offsets in one transaction, the Iceberg source, and the compaction of tables."""

from sluiceway.connectors.iceberg.connector import IcebergCompactionConnector, IcebergSinkConnector, TabularIcebergSinkConnector
from sluiceway.connectors.iceberg.source import IcebergSourceConnector

__all__ = ["IcebergCompactionConnector", "IcebergSinkConnector", "IcebergSourceConnector", "TabularIcebergSinkConnector"]
