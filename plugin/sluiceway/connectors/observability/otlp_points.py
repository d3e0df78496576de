"""Turns OTLP's metrics into records of metrics. No I/O."""

from __future__ import annotations

import base64
import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from sluiceway.connectors.observability.records import (
    CUMULATIVE,
    DELTA,
    Exemplar,
    Histogram,
    Point,
    Series,
    Summary,
    metric_struct,
    stale_struct,
)
from sluiceway.connectors.observability.targets import merged
from sluiceway.data import Struct
from sluiceway.errors import DataError

if TYPE_CHECKING:
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
    from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
    from opentelemetry.proto.metrics.v1.metrics_pb2 import ExponentialHistogramDataPoint, HistogramDataPoint, Metric

_MOST_KEY = 16_384
_MOST_BUCKETS = 10_000
_MOST_REASONS = 3
_MOST_EXEMPLARS = 1000
_BASE_BYTES, _BYTES_A_BUCKET, _BYTES_AN_EXEMPLAR = 500, 64, 600
NO_VALUE = 1
"""The flag of a point that says that its series has no value."""
ORIGIN = "prometheus.type"
"""The metadata of a metric with its type in Prometheus."""
ORIGINS = ("info", "stateset", "unknown")
"""The types of Prometheus that OTLP has only as metadata."""
_TEMPORALITIES = {1: DELTA, 2: CUMULATIVE}
_TYPES = {"gauge": "gauge", "histogram": "histogram", "exponential_histogram": "histogram", "summary": "summary"}
_COUNTER, _UP_DOWN = "counter", "updowncounter"


class TooLargeError(DataError):
    """A request has more points than the buffer could ever hold."""


class Received(NamedTuple):
    """A point: the key and the value of its record."""

    key: str
    value: Struct


class OtlpPoints:
    """The points of a request. ``at`` is when it came, in milliseconds. Raises TooLargeError above a limit on points or bytes.

    Attributes:
        items: the points.
        size: their bytes of memory, about.
        rejected: how many points cannot be records.
    """

    def __init__(
        self, request: ExportMetricsServiceRequest, at: int, *, with_help: bool, most_points: int, most_bytes: int
    ) -> None:
        self._at = at
        self._with_help = with_help
        self._most_points = most_points
        self._most_bytes = most_bytes
        self._reasons: dict[str, None] = {}
        self.items: list[Received] = []
        self.size = 0
        self.rejected = 0
        for resource in request.resource_metrics:
            own = attributes(resource.resource.attributes)
            for scope in resource.scope_metrics:
                labels = merged(_scope_labels(scope.scope), own, honor=False)
                for metric in scope.metrics:
                    self._read(metric, labels)

    @property
    def reason(self) -> str:
        """Why points were rejected: the first reasons."""
        return "; ".join(self._reasons)

    def _read(self, metric: Metric, labels: Mapping[str, str]) -> None:
        kind = metric.WhichOneof("data")
        if kind is None:
            return
        data: Any = getattr(metric, kind)
        for point in data.data_points:
            try:
                item, size = self._item(metric, kind, data, point, labels)
            except DataError as error:
                self.rejected += 1
                if len(self._reasons) < _MOST_REASONS:
                    self._reasons[f"{metric.name[:100] or 'a metric'}: {error}"] = None
                continue
            self.items.append(item)
            self.size += size
            if len(self.items) > self._most_points or self.size > self._most_bytes:
                raise TooLargeError(
                    f"has more points than the buffer holds: {self._most_points} points, {self._most_bytes} bytes"
                )

    def _item(self, metric: Metric, kind: str, data: Any, point: Any, labels: Mapping[str, str]) -> tuple[Received, int]:
        if not metric.name:
            raise DataError("it has no name")
        temporality = None
        type_ = _type_of(metric, kind, data)
        if kind not in ("gauge", "summary"):
            temporality = _TEMPORALITIES.get(data.aggregation_temporality)
            if temporality is None:
                raise DataError("its aggregation temporality is neither delta nor cumulative")
        help_ = metric.description or None if self._with_help else None
        all_labels = merged(attributes(point.attributes), labels, honor=False)
        series = Series.of(metric.name, type_, all_labels, metric.unit or None, help_)
        if len(series.key) > _MOST_KEY:
            raise DataError(f"its name and attributes have more than {_MOST_KEY} characters")
        at = point.time_unix_nano // 1_000_000 or self._at
        size = _BASE_BYTES + 2 * len(series.key)
        if point.flags & NO_VALUE:
            return Received(series.key, stale_struct(series, at)), size
        value = _value(kind, point)
        if isinstance(value, Histogram):
            size += _BYTES_A_BUCKET * len(value.bounds)
        start = point.start_time_unix_nano // 1_000_000 or None
        exemplars = () if kind == "summary" else _exemplars(point)
        size += _BYTES_AN_EXEMPLAR * len(exemplars)
        found = Point(series, value, at, start, exemplars, temporality)
        return Received(series.key, metric_struct(found, at)), size


def _type_of(metric: Metric, kind: str, data: Any) -> str:
    if kind == "gauge" or (kind == "sum" and not data.is_monotonic):
        origin = next((each.value.string_value for each in metric.metadata if each.key == ORIGIN), "")
        if origin in ORIGINS:
            return origin
    return _TYPES.get(kind) or (_COUNTER if data.is_monotonic else _UP_DOWN)


def _value(kind: str, point: Any) -> float | Histogram | Summary:
    if kind == "histogram":
        return _histogram(point)
    if kind == "exponential_histogram":
        return _exponential(point)
    if kind == "summary":
        if len(point.quantile_values) > _MOST_BUCKETS:
            raise DataError(f"it has more than {_MOST_BUCKETS} quantiles")
        pairs = sorted((each.quantile, each.value) for each in point.quantile_values)
        return Summary([quantile for quantile, _ in pairs], [value for _, value in pairs], float(point.count), point.sum)
    which = point.WhichOneof("value")
    if which is None:
        raise DataError("a point has no value")
    return float(getattr(point, which))


def _exemplars(point: Any) -> list[Exemplar]:
    """Return the exemplars that have a value. The ids of their traces and spans are labels, as in Prometheus."""
    if len(point.exemplars) > _MOST_EXEMPLARS:
        raise DataError(f"it has more than {_MOST_EXEMPLARS} exemplars")
    found: list[Exemplar] = []
    for each in point.exemplars:
        which = each.WhichOneof("value")
        if which is not None:
            ids = {"trace_id": _hexadecimal(each.trace_id, 16), "span_id": _hexadecimal(each.span_id, 8)}
            labels = {**attributes(each.filtered_attributes), **{name: id_ for name, id_ in ids.items() if id_}}
            found.append(Exemplar(labels, float(getattr(each, which)), each.time_unix_nano // 1_000_000 or None))
    return found


def _hexadecimal(found: bytes, size: int) -> str:
    """Return an id of this many bytes in hexadecimal. OTLP's JSON has it so, and protobuf takes that for Base64."""
    return found.hex() if len(found) == size else base64.b64encode(found).decode().lower()


def _histogram(point: HistogramDataPoint) -> Histogram:
    bounds, counts = list(point.explicit_bounds), list(point.bucket_counts)
    if len(bounds) > _MOST_BUCKETS:
        raise DataError(f"it has more than {_MOST_BUCKETS} buckets")
    if len(counts) != len(bounds) + 1 and (bounds or counts):
        raise DataError(f"it has {len(bounds)} bounds and {len(counts)} buckets, where there must be one bucket more")
    if bounds and bounds[-1] == math.inf:
        bounds.pop()
    if not (all(map(math.isfinite, bounds)) and all(low < high for low, high in itertools.pairwise(bounds))):
        raise DataError("its bounds are not ascending numbers")
    cumulative = [float(count) for count in itertools.accumulate(counts)][: len(bounds)]
    return _with_extremes(point, bounds, cumulative)


def _exponential(point: ExponentialHistogramDataPoint) -> Histogram:
    """Return an exponential histogram with explicit bounds, which are exact: those of its buckets that are not empty."""
    positive, negative = point.positive, point.negative
    if len(positive.bucket_counts) + len(negative.bucket_counts) > _MOST_BUCKETS:
        raise DataError(f"it has more than {_MOST_BUCKETS} buckets")
    edges: list[tuple[float, int]] = []
    for index, count in _counted(negative.offset, negative.bucket_counts, reverse=True):
        edges += [(-_edge(index + 1, point.scale), 0), (-_edge(index, point.scale), count)]
    if point.zero_count:
        edges += [(-point.zero_threshold, 0)] if point.zero_threshold > 0 else []
        edges.append((point.zero_threshold, point.zero_count))
    for index, count in _counted(positive.offset, positive.bucket_counts):
        edges += [(_edge(index, point.scale), 0), (_edge(index + 1, point.scale), count)]
    bounds: list[float] = []
    counts: list[float] = []
    total = 0.0
    for bound, count in edges:
        total += count
        if bounds and bound <= bounds[-1]:  # the same edge twice
            counts[-1] = total
        elif math.isfinite(bound):
            bounds.append(bound)
            counts.append(total)
    return _with_extremes(point, bounds, counts)


def _counted(offset: int, counts: Sequence[int], *, reverse: bool = False) -> Iterator[tuple[int, int]]:
    """Return the indexes and the counts of the buckets that are not empty."""
    order: Iterable[int] = range(len(counts))
    for number in reversed(range(len(counts))) if reverse else order:
        if counts[number]:
            yield offset + number, counts[number]


def _edge(index: int, scale: int) -> float:
    """Return the lower edge of a bucket of an exponential histogram."""
    try:
        return math.pow(2.0, math.ldexp(index, -scale))
    except OverflowError:
        return math.inf if index > 0 else 0.0


def _with_extremes(point: Any, bounds: list[float], counts: list[float]) -> Histogram:
    total, low, high = (getattr(point, name) if point.HasField(name) else None for name in ("sum", "min", "max"))
    return Histogram(bounds, counts, float(point.count), total, low, high)


def _scope_labels(scope: InstrumentationScope) -> dict[str, str]:
    own = {f"otel.scope.{name}": value for name, value in attributes(scope.attributes).items()}
    return {**own, "otel.scope.name": scope.name, "otel.scope.version": scope.version}


def attributes(found: Iterable[KeyValue]) -> dict[str, str]:
    """Return attributes as texts. Those without a name or a value are left out."""
    texts = {each.key: _text(each.value) for each in found if each.key}
    return {key: value for key, value in texts.items() if value}


def _text(value: AnyValue) -> str:
    plain = _plain(value)
    if isinstance(plain, str):
        return plain
    return "" if plain is None else json.dumps(plain, ensure_ascii=False, separators=(",", ":"))


def _plain(value: AnyValue) -> Any:
    """Return an attribute's value as JSON has it; bytes in Base64, as OpenTelemetry says."""
    kind = value.WhichOneof("value")
    if kind == "bytes_value":
        return base64.b64encode(value.bytes_value).decode()
    if kind == "array_value":
        return [_plain(each) for each in value.array_value.values]
    if kind == "kvlist_value":
        return {each.key: _plain(each.value) for each in value.kvlist_value.values}
    return None if kind is None else getattr(value, kind)
