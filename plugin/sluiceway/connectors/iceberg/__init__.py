"""The Iceberg sink, which commits records and their offsets in one transaction, and the Iceberg source."""

from sluiceway.connectors.iceberg.connector import IcebergSinkConnector, TabularIcebergSinkConnector
from sluiceway.connectors.iceberg.source import IcebergSourceConnector

__all__ = ["IcebergSinkConnector", "IcebergSourceConnector", "TabularIcebergSinkConnector"]
