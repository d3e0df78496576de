"""Exports a driver's metrics by OTLP, with OpenTelemetry's SDK and its standard ``OTEL_*`` variables.

It reads the same beans as ``/metrics``, and exports them under the same names. Needs the extra ``otel``. Runs on a thread of its
own.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from sluiceway import __version__
from sluiceway.metrics.beans import Bean
from sluiceway.telemetry.environment import Signal, enabled, resource, uses_grpc, warn_missing

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import Metric, MetricExporter, MetricsData, NumberDataPoint
    from opentelemetry.sdk.resources import Resource

log = logging.getLogger(__name__)

_INTERVAL = ("OTEL_METRIC_EXPORT_INTERVAL", 60_000.0)
_TIMEOUT = ("OTEL_METRIC_EXPORT_TIMEOUT", 30_000.0)
_CLOSE_SECONDS = 5.0
_UNKNOWN_START = 0
"""A counter starts with its task, which the driver does not know; receivers see a restart by the lower value."""


def export_of(beans: Callable[[], Iterable[Bean]], worker_id: str) -> OtlpExport | None:
    """Start to export these metrics, or return None if the environment does not ask for it or the SDK is not installed."""
    if not enabled(Signal.METRICS, os.environ):
        return None
    try:
        return OtlpExport(_exporter(os.environ), resource(worker_id), beans)
    except ImportError as error:
        warn_missing(Signal.METRICS, error, os.environ)
        return None


class OtlpExport:
    """Exports metrics every ``OTEL_METRIC_EXPORT_INTERVAL``, and once more at the end."""

    def __init__(self, exporter: MetricExporter, resource: Resource, beans: Callable[[], Iterable[Bean]]) -> None:
        self._exporter = exporter
        self._resource = resource
        self._beans = beans
        self._interval = _milliseconds(*_INTERVAL) / 1000
        self._timeout = _milliseconds(*_TIMEOUT)
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="otlp-metrics", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Export once more, for some seconds at most: a receiver that is down must not keep a driver from ending."""
        self._ending.set()
        self._thread.join(_CLOSE_SECONDS)
        self._exporter.shutdown(timeout_millis=1000)

    def _run(self) -> None:
        while not self._ending.wait(self._interval):
            self._export()
        self._export()

    def _export(self) -> None:
        try:
            self._exporter.export(metrics_data(self._beans(), self._resource), timeout_millis=self._timeout)
        except Exception:  # the thread's outermost frame: the next export may succeed
            log.exception("Cannot export metrics by OTLP; trying again in %g s", self._interval)


def metrics_data(beans: Iterable[Bean], resource: Resource, now: int | None = None) -> MetricsData:
    """Return metrics in OpenTelemetry's form, without values that are not known; ``now`` is in nanoseconds since the epoch."""
    from opentelemetry.sdk.metrics.export import MetricsData, ResourceMetrics, ScopeMetrics
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope

    from sluiceway.metrics.exposition import families

    at = time.time_ns() if now is None else now
    metrics = [metric for family in families(beans) if (metric := _metric(family, at)) is not None]
    scope = ScopeMetrics(InstrumentationScope("sluiceway", __version__), metrics, "")
    return MetricsData([ResourceMetrics(resource, [scope], "")])


def _metric(family: Any, now: int) -> Metric | None:
    from opentelemetry.sdk.metrics.export import AggregationTemporality, Gauge, Metric, Sum

    points = _points(family.samples, now)
    if not points:
        return None
    name = family.samples[0].name
    if family.type == "counter":
        return Metric(name, family.documentation, "", Sum(points, AggregationTemporality.CUMULATIVE, is_monotonic=True))
    return Metric(name, family.documentation, "", Gauge(points))


def _points(samples: Iterable[Any], now: int) -> list[NumberDataPoint]:
    from opentelemetry.sdk.metrics.export import NumberDataPoint

    return [NumberDataPoint(each.labels, _UNKNOWN_START, now, each.value) for each in samples if not math.isnan(each.value)]


def _exporter(environment: Mapping[str, str]) -> MetricExporter:
    """Return OpenTelemetry's exporter for the protocol of the environment. It reads the other variables itself."""
    if uses_grpc(Signal.METRICS, environment):
        from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter as GrpcExporter

        return GrpcExporter()
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

    return OTLPMetricExporter()


def _milliseconds(variable: str, default: float) -> float:
    text = os.environ.get(variable, "").strip()
    try:
        value = float(text) if text else default
    except ValueError:
        value = 0.0
    if value <= 0:
        log.warning("%s=%s is not a number of milliseconds; using %g", variable, text, default)
        return default
    return value
