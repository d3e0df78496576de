"""Airflow sensors on connectors and their topics."""

from __future__ import annotations

from sluiceway.provider.requirements import require_airflow

require_airflow()

from sluiceway.sensors.progress import (  # noqa: E402
    ConnectorIntervalSensor,
    ConnectorLagSensor,
    ConnectorOffsetsSensor,
    TopicRecordsSensor,
)
from sluiceway.sensors.state import ConnectorStateSensor  # noqa: E402

__all__ = [
    "ConnectorIntervalSensor",
    "ConnectorLagSensor",
    "ConnectorOffsetsSensor",
    "ConnectorStateSensor",
    "TopicRecordsSensor",
]
