"""The Delta sink, which commits records and their offsets in one transaction, and the Delta source."""

from sluiceway.connectors.delta.connector import DeltaSinkConnector
from sluiceway.connectors.delta.source import DeltaSourceConnector

__all__ = ["DeltaSinkConnector", "DeltaSourceConnector"]
