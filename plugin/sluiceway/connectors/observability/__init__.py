"""Metrics of applications: scraped from targets as Prometheus does, received by OTLP and StatsD, or sent by OTLP."""

from sluiceway.connectors.observability.otlp import OtlpSourceConnector
from sluiceway.connectors.observability.otlp_sink import OtlpSinkConnector
from sluiceway.connectors.observability.prometheus import PrometheusSourceConnector
from sluiceway.connectors.observability.statsd import StatsdSourceConnector

__all__ = ["OtlpSinkConnector", "OtlpSourceConnector", "PrometheusSourceConnector", "StatsdSourceConnector"]
