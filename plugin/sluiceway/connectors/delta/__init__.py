"""The Delta sink: commits records and their offsets to Delta tables in one transaction."""

from sluiceway.connectors.delta.connector import DeltaSinkConnector

__all__ = ["DeltaSinkConnector"]
