"""Kept for DAGs written for 0.1.0, whose documentation named this path. Use ``sluiceway.provider.lineage.assets``."""

from __future__ import annotations

from sluiceway.provider.lineage.assets import connector_asset, topic_asset

__all__ = ["connector_asset", "topic_asset"]
