"""Airflow operators that run connectors on Spark, and operators that create, pause, resume, change and delete them."""

from __future__ import annotations

from sluiceway.provider.requirements import SPARK_PROVIDER, require_airflow

require_airflow(SPARK_PROVIDER)

from sluiceway.operators.application import ApplicationOperator  # noqa: E402
from sluiceway.operators.connector import ConnectorOperator, SinkConnectorOperator, SourceConnectorOperator  # noqa: E402
from sluiceway.operators.control import (  # noqa: E402
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
