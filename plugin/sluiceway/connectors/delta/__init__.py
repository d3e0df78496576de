"""The Delta sink, which commits records and their offsets to Delta tables in one transaction, and the compaction of these."""

from sluiceway.connectors.delta.connector import DeltaCompactionConnector, DeltaSinkConnector

__all__ = ["DeltaCompactionConnector", "DeltaSinkConnector"]
