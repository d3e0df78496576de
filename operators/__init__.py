"""Airflow operators that run connectors on Spark, and operators that create, pause, resume, change and delete them."""

from __future__ import annotations

from sluiceway.operators.application import ApplicationOperator
from sluiceway.operators.connector import ConnectorOperator, SinkConnectorOperator, SourceConnectorOperator
from sluiceway.operators.control import (
    CreateConnectorOperator,
    DeleteConnectorOperator,
    PauseConnectorOperator,
    RestartConnectorOperator,
    ResumeConnectorOperator,
    SetConnectorOffsetsOperator,
    StopConnectorOperator,
)

__all__ = [
    "ApplicationOperator",
    "ConnectorOperator",
    "CreateConnectorOperator",
    "DeleteConnectorOperator",
    "PauseConnectorOperator",
    "RestartConnectorOperator",
    "ResumeConnectorOperator",
    "SetConnectorOffsetsOperator",
    "SinkConnectorOperator",
    "SourceConnectorOperator",
    "StopConnectorOperator",
]
