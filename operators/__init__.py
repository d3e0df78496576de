"""Airflow operators that run connectors on Spark."""

from __future__ import annotations

from sluiceway.operators.connector import ConnectorOperator, SinkConnectorOperator, SourceConnectorOperator

__all__ = ["ConnectorOperator", "SinkConnectorOperator", "SourceConnectorOperator"]
