"""Turns records of metrics into OTLP's metrics, the reverse of ``otlp_points``. No I/O."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from sluiceway.connectors.observability.otlp_points import NO_VALUE, ORIGIN, ORIGINS
from sluiceway.connectors.observability.records import CUMULATIVE, DELTA
from sluiceway.errors import DataError, MissingToolError
from sluiceway.installation import install_command

if TYPE_CHECKING:
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

_SCOPE = "otel.scope."
_SCOPE_NAME, _SCOPE_VERSION = f"{_SCOPE}name", f"{_SCOPE}version"
_GAUGE, _SUM, _HISTOGRAM, _SUMMARY = "gauge", "sum", "histogram", "summary"
_KINDS = {
    "counter": _SUM,
    "updowncounter": _SUM,
    "gauge": _GAUGE,
    "unknown": _GAUGE,
    "set": _GAUGE,
    "info": _SUM,
    "stateset": _SUM,
    "histogram": _HISTOGRAM,
    "timer": _HISTOGRAM,
    "distribution": _HISTOGRAM,
    "summary": _SUMMARY,
}
"""The kinds of OTLP by types, as in OpenTelemetry's specification of its compatibility with Prometheus."""
_TEMPORALITIES = {None: 2, CUMULATIVE: 2, DELTA: 1}
_NANOS = 1_000_000  # of a millisecond
_NOT_FINITE = ("NaN", "Infinity", "-Infinity")
_IDS = {"trace_id": re.compile("[0-9a-f]{32}"), "span_id": re.compile("[0-9a-f]{16}")}
_BASE_BYTES = 20

Pairs = tuple[tuple[str, str], ...]


class MetricOf(NamedTuple):
    """The metric of a point: what its points have in common, below a resource and a scope."""

    name: str
    kind: str
    unit: str
    description: str
    temporality: int
    monotonic: bool
    origin: str


class Item(NamedTuple):
    """A point, and what it belongs to. ``size`` is about its bytes in a request."""

    resource: Pairs
    scope: Pairs
    metric: MetricOf
    attributes: Pairs
    point: Any
    size: int


class OtlpWriter:
    """Makes points of records, and requests of points. Raises MissingToolError without the package of OTLP's messages."""

    def __init__(self, resource_labels: frozenset[str]) -> None:
        try:
            from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
            from opentelemetry.proto.metrics.v1 import metrics_pb2
        except ImportError as error:
            raise MissingToolError(
                f"OtlpSink needs a Python package that is not installed ({error}). Run: {install_command('otlp')} in the Python "
                "environment of the tasks."
            ) from error
        self._service = metrics_service_pb2
        self._metrics = metrics_pb2
        self._resource_labels = resource_labels

    def item(self, value: Mapping[str, Any]) -> Item:
        """Return the point of a record's value, a struct or a map with the same fields. Raises DataError."""
        try:
            fields = dict(value)
            metric = _metric_of(fields)
            labels = _texts(fields.get("labels"), "labels")
            resource, scope, attributes = self._split(labels)
            point = self._point(metric.kind, fields)
            _write(point.attributes, attributes)
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:  # protobuf's own are ValueErrors
            raise DataError(f"a field has a wrong type or value: {error}") from error
        size = _BASE_BYTES + point.ByteSize() + len(metric.name) + sum(map(len, itertools.chain(*resource, *scope)))
        return Item(resource, scope, metric, attributes, point, size)

    def request(self, items: Iterable[Item]) -> ExportMetricsServiceRequest:
        """Return a request with the points, those of each series in the order given."""
        request = self._service.ExportMetricsServiceRequest()
        resources: dict[Pairs, Any] = {}
        scopes: dict[tuple[Pairs, Pairs], Any] = {}
        points: dict[tuple[Pairs, Pairs, MetricOf], Any] = {}
        for item in items:
            own = item.resource, item.scope, item.metric
            if own not in points:
                if own[:2] not in scopes:
                    if item.resource not in resources:
                        resources[item.resource] = request.resource_metrics.add()
                        _write(resources[item.resource].resource.attributes, item.resource)
                    scopes[own[:2]] = _scope(resources[item.resource], item.scope)
                points[own] = _points(scopes[own[:2]], item.metric)
            points[own].append(item.point)
        return request

    def _split(self, labels: Mapping[str, str]) -> tuple[Pairs, Pairs, Pairs]:
        """Return the labels of the resource, of the scope, and of the point."""
        parts: tuple[list[tuple[str, str]], ...] = ([], [], [])
        for pair in sorted(labels.items()):
            name = pair[0]
            in_scope = name.startswith(_SCOPE) and name != _SCOPE
            parts[0 if name in self._resource_labels else 1 if in_scope else 2].append(pair)
        resource, scope, attributes = map(tuple, parts)
        return resource, scope, attributes

    def _point(self, kind: str, fields: Mapping[str, Any]) -> Any:
        made = {
            _HISTOGRAM: self._metrics.HistogramDataPoint,
            _SUMMARY: self._metrics.SummaryDataPoint,
        }.get(kind, self._metrics.NumberDataPoint)
        point: Any = made(time_unix_nano=fields["timestamp"] * _NANOS)
        if fields.get("start_timestamp") is not None:
            point.start_time_unix_nano = fields["start_timestamp"] * _NANOS
        if fields.get("stale"):
            point.flags = NO_VALUE
            return point
        if kind == _HISTOGRAM:
            _fill_histogram(point, fields)
        elif kind == _SUMMARY:
            _fill_summary(point, _part(fields, "summary"))
        else:
            point.as_double = _scaled(fields)
        if kind != _SUMMARY:
            for exemplar in fields.get("exemplars") or ():
                _fill_exemplar(point.exemplars.add(), dict(exemplar))
        return point


def _metric_of(fields: Mapping[str, Any]) -> MetricOf:
    name, type_, temporality = fields.get("name"), fields.get("type"), fields.get("temporality")
    if not isinstance(name, str) or not name:
        raise DataError("it has no name")
    kind = _KINDS.get(str(type_))
    if kind is None:
        raise DataError(f"OTLP has no counterpart of its type {str(type_)[:50]!r}. It has those of {', '.join(_KINDS)}")
    if temporality not in _TEMPORALITIES:
        raise DataError(f"its temporality {str(temporality)[:50]!r} is neither {CUMULATIVE} nor {DELTA}")
    if type_ == "gauge" and temporality == DELTA:  # a change of StatsD
        kind = _SUM
    number = _TEMPORALITIES[temporality] if kind in (_SUM, _HISTOGRAM) else 0
    origin = type_ if type_ in ORIGINS else ""
    unit, description = (fields.get(each) or "" for each in ("unit", "help"))
    return MetricOf(name, kind, str(unit), str(description), number, type_ == "counter", str(origin))


def _scaled(fields: Mapping[str, Any]) -> float:
    """Return the number of a point; that of a counter of StatsD for all events, of which the client has sent a share."""
    value = fields.get("value")
    if value is None:
        if fields.get("member") is not None:
            raise DataError("it is a member of a set of StatsD, which is no number. With statsd.flush.ms, sets are counted")
        raise DataError("it has no value, and is no staleness marker")
    rate = fields.get("sample_rate")
    return _number(value) / _number(rate) if rate and fields["type"] == "counter" else _number(value)


def _fill_histogram(point: Any, fields: Mapping[str, Any]) -> None:
    if fields.get("histogram") is None and fields.get("value") is not None:  # an observation of StatsD
        value, rate = _number(fields["value"]), _number(fields.get("sample_rate") or 1.0)
        point.count = max(1, round(1 / rate))
        point.sum, point.min, point.max = value * point.count, value, value
        return
    found = _part(fields, "histogram")
    bounds = [_number(each) for each in found.get("bounds") or ()]
    counts = [_count(each) for each in found.get("counts") or ()]
    total = _count(found.get("count"))
    if len(bounds) != len(counts):
        raise DataError(f"its histogram has {len(bounds)} bounds and {len(counts)} counts")
    if not all(low <= high for low, high in itertools.pairwise([0, *counts, total])):
        raise DataError("the counts of its histogram fall")
    if not (all(map(math.isfinite, bounds)) and all(low < high for low, high in itertools.pairwise(bounds))):
        raise DataError("the bounds of its histogram are not ascending numbers")
    point.count = total
    if bounds:
        point.explicit_bounds.extend(bounds)
        point.bucket_counts.extend(high - low for low, high in itertools.pairwise([0, *counts, total]))
    for name in ("sum", "min", "max"):
        if found.get(name) is not None:
            setattr(point, name, _number(found[name]))


def _fill_summary(point: Any, found: Mapping[str, Any]) -> None:
    point.count = _count(found.get("count"))
    point.sum = _number(found.get("sum") or 0.0)
    quantiles, values = found.get("quantiles") or (), found.get("values") or ()
    for quantile, value in zip(quantiles, values, strict=True):
        point.quantile_values.add(quantile=_number(quantile), value=_number(value))


def _fill_exemplar(point: Any, found: Mapping[str, Any]) -> None:
    labels = _texts(found.get("labels"), "labels of an exemplar")
    for name, form in _IDS.items():
        if form.fullmatch(labels.get(name, "")):
            setattr(point, name, bytes.fromhex(labels.pop(name)))
    _write(point.filtered_attributes, sorted(labels.items()))
    point.as_double = _number(found["value"])
    if found.get("timestamp") is not None:
        point.time_unix_nano = found["timestamp"] * _NANOS


def _part(fields: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = fields.get(name)
    if found is None:
        raise DataError(f"its type is {fields['type']}, and it has no {name}")
    return dict(found)


def _texts(labels: Any, what: str) -> dict[str, str]:
    found = dict(labels or {})
    if not all(isinstance(each, str) for pair in found.items() for each in pair):
        raise DataError(f"its {what} are not all texts")
    return found


def _number(value: Any) -> float:
    """Return a number, also one that JSON has as a text because it is not finite."""
    if isinstance(value, bool) or not (isinstance(value, (int, float)) or value in _NOT_FINITE):
        raise DataError(f"{str(value)[:50]!r} is not a number")
    return float(value)


def _count(value: Any) -> int:
    """Return a number of observations, which is a whole number in OTLP."""
    if value is None:
        raise DataError("it has no count of its observations, which OTLP needs")
    return round(_number(value))


def _write(attributes: Any, pairs: Sequence[tuple[str, str]]) -> None:
    for name, value in pairs:
        attributes.add(key=name).value.string_value = value


def _scope(resource: Any, labels: Pairs) -> Any:
    made = resource.scope_metrics.add()
    for name, value in labels:
        if name == _SCOPE_NAME:
            made.scope.name = value
        elif name == _SCOPE_VERSION:
            made.scope.version = value
        else:
            _write(made.scope.attributes, [(name.removeprefix(_SCOPE), value)])
    return made


def _points(scope: Any, metric: MetricOf) -> Any:
    """Return the points of a new metric."""
    made = scope.metrics.add(name=metric.name, unit=metric.unit, description=metric.description)
    if metric.origin:
        _write(made.metadata, [(ORIGIN, metric.origin)])
    data = getattr(made, metric.kind)
    data.SetInParent()
    if metric.temporality:
        data.aggregation_temporality = metric.temporality
    if metric.monotonic:
        data.is_monotonic = True
    return data.data_points
