"""The Delta sink, which commits records and their offsets in one transaction, the Delta source, and the compaction of tables."""

from sluiceway.connectors.delta.connector import DeltaCompactionConnector, DeltaSinkConnector
from sluiceway.connectors.delta.source import DeltaSourceConnector

__all__ = ["DeltaCompactionConnector", "DeltaSinkConnector", "DeltaSourceConnector"]
