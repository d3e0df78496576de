"""Runs Singer's taps as sources, and its targets as sinks."""

from sluiceway.connectors.singer.sink import SingerSinkConnector
from sluiceway.connectors.singer.source import SingerSourceConnector

__all__ = ["SingerSinkConnector", "SingerSourceConnector"]
