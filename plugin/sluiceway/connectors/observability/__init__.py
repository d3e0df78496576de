"""Metrics of applications: scraped from targets as Prometheus does, or received by OTLP and StatsD."""

from sluiceway.connectors.observability.otlp import OtlpSourceConnector
from sluiceway.connectors.observability.prometheus import PrometheusSourceConnector
from sluiceway.connectors.observability.statsd import StatsdSourceConnector

__all__ = ["OtlpSourceConnector", "PrometheusSourceConnector", "StatsdSourceConnector"]
