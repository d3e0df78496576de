"""Metrics of applications: scraped from targets that expose them as Prometheus does."""

from sluiceway.connectors.observability.prometheus import PrometheusSourceConnector

__all__ = ["PrometheusSourceConnector"]
