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

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import Metric, MetricExporter, MetricsData, NumberDataPoint
    from opentelemetry.sdk.resources import Resource

log = logging.getLogger(__name__)

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_INTERVAL = ("OTEL_METRIC_EXPORT_INTERVAL", 60_000.0)
_TIMEOUT = ("OTEL_METRIC_EXPORT_TIMEOUT", 30_000.0)
_CLOSE_SECONDS = 5.0
_UNKNOWN_START = 0
"""A counter starts with its task, which the driver does not know; receivers see a restart by the lower value."""


def export_of(beans: Callable[[], Iterable[Bean]], worker_id: str) -> OtlpExport | None:
    """Start to export these metrics, or return None if the environment does not ask for it or the SDK is not installed."""
    if not enabled(os.environ):
        return None
    try:
        exporter, resource = _exporter(os.environ), _resource(worker_id)
    except ImportError as error:
        log.warning(
            "The environment asks for metrics by OTLP, but %s is not installed. No metrics are exported. "
            "Install sluiceway[otel] in the Python environment of drivers, or unset %s.",
            error.name,
            " and ".join(name for name in _ENDPOINTS if name in os.environ),
        )
        return None
    return OtlpExport(exporter, resource, beans)


def enabled(environment: Mapping[str, str]) -> bool:
    """Return whether the environment asks for metrics by OTLP: it names an endpoint and does not turn them off. No I/O."""
    exporters = [name.strip() for name in environment.get("OTEL_METRICS_EXPORTER", "").split(",") if name.strip()]
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true" or (exporters and "otlp" not in exporters):
        return False
    return any(environment.get(name, "").strip() for name in _ENDPOINTS)


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
    protocol = next((environment[name] for name in _PROTOCOLS if environment.get(name)), "http/protobuf")
    if protocol.strip() == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter as GrpcExporter

        return GrpcExporter()
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

    return OTLPMetricExporter()


def _resource(worker_id: str) -> Resource:
    """Return the resource of ``OTEL_RESOURCE_ATTRIBUTES`` and ``OTEL_SERVICE_NAME``, completed by what this driver knows."""
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource

    own = {"service.name": "sluiceway", "service.version": __version__, "service.instance.id": worker_id}
    return Resource.create({**own, **OTELResourceDetector().detect().attributes})


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
