"""Airflow sensors on connectors and their topics."""

from __future__ import annotations

from sluiceway.sensors.progress import ConnectorLagSensor, ConnectorOffsetsSensor, TopicRecordsSensor
from sluiceway.sensors.state import ConnectorStateSensor

__all__ = ["ConnectorLagSensor", "ConnectorOffsetsSensor", "ConnectorStateSensor", "TopicRecordsSensor"]
