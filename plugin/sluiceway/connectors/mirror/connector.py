"""Keeps MirrorSourceConnector's earlier dotted path, which connectors' configs may hold."""

from sluiceway.connectors.mirror.source import MirrorSourceConnector

__all__ = ["MirrorSourceConnector"]
