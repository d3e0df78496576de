"""Airflow sensors on connectors."""

from __future__ import annotations

from sluiceway.sensors.state import ConnectorStateSensor

__all__ = ["ConnectorStateSensor"]
