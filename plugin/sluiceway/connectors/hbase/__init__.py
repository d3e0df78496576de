"""Connectors for HBase: rows read by ranges of row keys and time, and a sink that writes rows, by its Thrift 2 server."""

from sluiceway.connectors.hbase.sink import HBaseSinkConnector
from sluiceway.connectors.hbase.source import HBaseSourceConnector

__all__ = ["HBaseSinkConnector", "HBaseSourceConnector"]
