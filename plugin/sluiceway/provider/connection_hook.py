"""Kept for DAGs written for 0.1.0, whose documentation named this path. Use ``sluiceway.provider.hooks.kafka_connect``."""

from __future__ import annotations

from sluiceway.provider.hooks.kafka_connect import KafkaConnectHook

__all__ = ["KafkaConnectHook"]
