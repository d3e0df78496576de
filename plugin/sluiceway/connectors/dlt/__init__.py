"""A source that reads what dlt's sources and resources give (dlt: data load tool, a library of Python)."""

from sluiceway.connectors.dlt.connector import DltSourceConnector

__all__ = ["DltSourceConnector"]
