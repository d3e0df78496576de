"""Runs Singer's taps as sources."""

from sluiceway.connectors.singer.source import SingerSourceConnector

__all__ = ["SingerSourceConnector"]
