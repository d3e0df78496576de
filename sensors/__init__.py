"""Airflow sensors on connectors and their topics."""

from __future__ import annotations

from sluiceway.provider.requirements import require_airflow

require_airflow()

from sluiceway.sensors.progress import ConnectorLagSensor, ConnectorOffsetsSensor, TopicRecordsSensor  # noqa: E402
from sluiceway.sensors.state import ConnectorStateSensor  # noqa: E402

__all__ = ["ConnectorLagSensor", "ConnectorOffsetsSensor", "ConnectorStateSensor", "TopicRecordsSensor"]
