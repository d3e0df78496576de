"""Points of OTLP as records of metrics: kinds, labels, times, and what is rejected."""

from __future__ import annotations

import bisect
import math
from typing import Any

import pytest
from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.sdk.metrics._internal.exponential_histogram.mapping.logarithm_mapping import LogarithmMapping

from sluiceway.connectors.observability.otlp_points import OtlpPoints, TooLargeError

AT = 1_700_000_000_000
NANOS = 1_600_000_000_123_456_789


def read(*metrics: Any, resource: Any = (), scope: Any = None, most_points: int = 100, most_bytes: int = 2**20) -> OtlpPoints:
    document = {
        "resourceMetrics": [
            {"resource": {"attributes": list(resource)}, "scopeMetrics": [{"scope": scope or {}, "metrics": list(metrics)}]}
        ]
    }
    request = json_format.ParseDict(document, ExportMetricsServiceRequest())
    return OtlpPoints(request, AT, with_help=True, most_points=most_points, most_bytes=most_bytes)


def value(*metrics: Any, **more: Any) -> dict[str, Any]:
    found = read(*metrics, **more)
    assert (found.rejected, found.reason) == (0, "")
    [item] = found.items
    item.value.validate()
    return dict(item.value)


def gauge(*points: Any, name: str = "g") -> Any:
    return {"name": name, "gauge": {"dataPoints": list(points) or [{"asDouble": 1}]}}


def attribute(key: str, **typed: Any) -> Any:
    return {"key": key, "value": typed}


def test_a_gauge_has_its_time_unit_and_description() -> None:
    metric = {"name": "g", "unit": "By", "description": "d", "gauge": {"dataPoints": [{"asInt": "7", "timeUnixNano": NANOS}]}}
    found = value(metric)
    assert (found["name"], found["type"], found["unit"], found["help"]) == ("g", "gauge", "By", "d")
    assert (found["value"], found["timestamp"], found["start_timestamp"]) == (7.0, NANOS // 10**6, None)
    assert found["temporality"] is None


def test_a_point_without_a_time_has_that_of_its_request() -> None:
    assert value(gauge())["timestamp"] == AT


@pytest.mark.parametrize(("monotonic", "type_"), [(True, "counter"), (False, "updowncounter")])
@pytest.mark.parametrize(("number", "temporality"), [(1, "delta"), (2, "cumulative")])
def test_sums(monotonic: bool, type_: str, number: int, temporality: str) -> None:
    point = {"asDouble": 1.5, "startTimeUnixNano": NANOS, "timeUnixNano": NANOS + 10**9}
    found = value({"name": "s", "sum": {"aggregationTemporality": number, "isMonotonic": monotonic, "dataPoints": [point]}})
    assert (found["type"], found["temporality"], found["value"]) == (type_, temporality, 1.5)
    assert (found["start_timestamp"], found["timestamp"]) == (NANOS // 10**6, NANOS // 10**6 + 1000)


@pytest.mark.parametrize(
    ("told", "type_"), [("info", "info"), ("stateset", "stateset"), ("unknown", "unknown"), ("gauge", "gauge")]
)
def test_types_of_prometheus_that_otlp_lacks_are_in_the_metadata(told: str, type_: str) -> None:
    metadata = {"metadata": [attribute("other", stringValue="summary"), attribute("prometheus.type", stringValue=told)]}
    assert value({**gauge(), **metadata})["type"] == type_
    data = {"aggregationTemporality": 2, "dataPoints": [{"asDouble": 1}]}
    assert value({"name": "s", **metadata, "sum": data})["type"] == ("updowncounter" if told == "gauge" else type_)
    assert value({"name": "s", **metadata, "sum": {**data, "isMonotonic": True}})["type"] == "counter"
    assert value({"name": "h", **metadata, "histogram": data | {"dataPoints": [{"count": 1}]}})["type"] == "histogram"


def test_more_exemplars_than_anyone_sends_are_rejected() -> None:
    found = read(gauge({"asDouble": 1, "exemplars": [{"asDouble": 1}] * 1001}))
    assert (found.rejected, found.reason) == (1, "g: it has more than 1000 exemplars")
    assert read(gauge({"asDouble": 1, "exemplars": [{"asDouble": 1}] * 1000})).size > 500_000


def test_a_histogram_has_cumulative_counts_and_extremes() -> None:
    point = {"count": 6, "sum": 9.5, "min": 0.5, "max": 4, "explicitBounds": [1, 2], "bucketCounts": [1, 2, 3]}
    found = value({"name": "h", "histogram": {"aggregationTemporality": 1, "dataPoints": [point]}})
    assert (found["type"], found["temporality"], found["value"]) == ("histogram", "delta", None)
    assert dict(found["histogram"]) == {
        "count": 6.0,
        "sum": 9.5,
        "bounds": [1.0, 2.0],
        "counts": [1.0, 3.0],
        "min": 0.5,
        "max": 4.0,
    }


def test_a_histogram_may_have_no_buckets_and_no_sum() -> None:
    found = value({"name": "h", "histogram": {"aggregationTemporality": 2, "dataPoints": [{"count": 6}]}})["histogram"]
    assert (found["count"], found["sum"], found["min"], found["bounds"], found["counts"]) == (6.0, None, None, [], [])


def test_an_infinite_bound_is_left_out() -> None:
    point = {"count": 3, "explicitBounds": [1, "Infinity"], "bucketCounts": [1, 2, 0]}
    found = value({"name": "h", "histogram": {"aggregationTemporality": 2, "dataPoints": [point]}})["histogram"]
    assert (found["bounds"], found["counts"]) == ([1.0], [1.0])


def test_a_summary() -> None:
    quantiles = [{"quantile": 1, "value": 9}, {"quantile": 0.5, "value": 4}]
    found = value({"name": "s", "summary": {"dataPoints": [{"count": 2, "sum": 13, "quantileValues": quantiles}]}})
    assert (found["type"], found["temporality"]) == ("summary", None)
    assert dict(found["summary"]) == {"count": 2.0, "sum": 13.0, "quantiles": [0.5, 1.0], "values": [4.0, 9.0]}


def exponential(**point: Any) -> Any:
    return {"name": "e", "exponentialHistogram": {"aggregationTemporality": 2, "dataPoints": [point]}}


def test_an_exponential_histogram_has_the_edges_of_its_buckets() -> None:
    found = value(
        exponential(
            count=15,
            scale=0,
            zeroCount=4,
            zeroThreshold=0.25,
            positive={"offset": 0, "bucketCounts": [1, 0, 2]},
            negative={"offset": 1, "bucketCounts": [3, 5]},
        )
    )["histogram"]
    assert found["bounds"] == [-8.0, -4.0, -2.0, -0.25, 0.25, 1.0, 2.0, 4.0, 8.0]
    assert found["counts"] == [0.0, 5.0, 8.0, 8.0, 12.0, 12.0, 13.0, 13.0, 15.0]
    assert found["count"] == 15.0


@given(
    st.integers(1, 20),
    st.lists(st.floats(1e-6, 1e6) | st.floats(-1e6, -1e-6) | st.just(0.0), min_size=1, max_size=30),
)
def test_an_exponential_histogram_counts_as_its_values_do(scale: int, observed: list[float]) -> None:
    """Where the SDK's own mapping puts each value; an edge itself may belong to either side."""
    mapping = LogarithmMapping(scale)
    sides: dict[str, dict[int, int]] = {"positive": {}, "negative": {}}
    for each in observed:
        if each:
            side = sides["positive" if each > 0 else "negative"]
            index = mapping.map_to_index(abs(each))
            side[index] = side.get(index, 0) + 1
    if (
        any(side and max(side) - min(side) >= 9_000 for side in sides.values())
        or sum(max(side) - min(side) + 1 for side in sides.values() if side) > 10_000
    ):
        return
    buckets = {
        name: {"offset": min(side), "bucketCounts": [side.get(index, 0) for index in range(min(side), max(side) + 1)]}
        for name, side in sides.items()
        if side
    }
    found = value(exponential(count=len(observed), scale=scale, zeroCount=observed.count(0.0), **buckets))["histogram"]
    assert found["bounds"] == sorted(set(found["bounds"]))
    ordered = sorted(observed)
    for bound, count in zip(found["bounds"], found["counts"], strict=True):
        near = abs(bound) * 1e-9
        assert bisect.bisect_left(ordered, bound - near) <= count <= bisect.bisect_right(ordered, bound + near)
    assert found["counts"][-1] == len(observed)


@pytest.mark.parametrize("scale", [-2_000_000_000, -11, 20, 2_000_000_000])
@pytest.mark.parametrize("offset", [-2_000_000_000, -1, 0, 2_000_000_000])
def test_edges_that_no_double_can_hold_are_left_out(scale: int, offset: int) -> None:
    buckets = {"offset": offset, "bucketCounts": [1, 1]}
    found = value(exponential(count=4, scale=scale, positive=buckets, negative=buckets))["histogram"]
    assert all(map(math.isfinite, found["bounds"]))
    assert found["bounds"] == sorted(set(found["bounds"]))
    assert found["counts"] == sorted(found["counts"])
    assert found["count"] == 4.0


def test_a_bucket_may_begin_at_zero_and_end_at_infinity() -> None:
    found = value(exponential(count=2, scale=-2_000_000_000, positive={"offset": -1, "bucketCounts": [1, 1]}))["histogram"]
    assert (found["bounds"], found["counts"], found["count"]) == ([0.0, 1.0], [0.0, 1.0], 2.0)


def test_a_point_without_a_recorded_value_is_a_staleness_marker() -> None:
    found = value(gauge({"flags": 1, "timeUnixNano": NANOS}))
    assert (found["stale"], found["value"], found["timestamp"]) == (True, None, NANOS // 10**6)


def test_attributes_of_resource_scope_and_point_are_labels() -> None:
    found = value(
        gauge({"asDouble": 1, "attributes": [attribute("status", intValue="200"), attribute("host", stringValue="mine")]}),
        resource=[attribute("host", stringValue="web-1"), attribute("", stringValue="x"), attribute("none", stringValue="")],
        scope={"name": "shop", "version": "2", "attributes": [attribute("level", boolValue=True)]},
    )
    assert found["labels"] == {
        "host": "web-1",
        "exported_host": "mine",
        "status": "200",
        "otel.scope.name": "shop",
        "otel.scope.version": "2",
        "otel.scope.level": "true",
    }


@pytest.mark.parametrize(
    ("typed", "text"),
    [
        ({"stringValue": 'a"b'}, 'a"b'),
        ({"boolValue": False}, "false"),
        ({"intValue": "-3"}, "-3"),
        ({"doubleValue": 1.5}, "1.5"),
        ({"bytesValue": "AQI="}, "AQI="),
        ({"arrayValue": {"values": [{"stringValue": "é"}, {"intValue": "1"}, {}]}}, '["é",1,null]'),
        ({"kvlistValue": {"values": [attribute("k", boolValue=True)]}}, '{"k":true}'),
    ],
)
def test_attributes_are_texts(typed: Any, text: str) -> None:
    assert value(gauge({"asDouble": 1, "attributes": [attribute("a", **typed)]}))["labels"] == {"a": text}


@pytest.mark.parametrize(
    ("metric", "reason"),
    [
        (gauge({}), "g: a point has no value"),
        (gauge(name=""), "a metric: it has no name"),
        ({"name": "s", "sum": {"dataPoints": [{"asInt": 1}]}}, "s: its aggregation temporality is neither delta nor cumulative"),
        (
            {
                "name": "h",
                "histogram": {"aggregationTemporality": 1, "dataPoints": [{"explicitBounds": [1], "bucketCounts": [1]}]},
            },
            "h: it has 1 bounds and 1 buckets, where there must be one bucket more",
        ),
        (
            {
                "name": "h",
                "histogram": {"aggregationTemporality": 1, "dataPoints": [{"explicitBounds": [2, 1], "bucketCounts": [1, 2, 3]}]},
            },
            "h: its bounds are not ascending numbers",
        ),
        (exponential(positive={"bucketCounts": [1] * 10_001}), "e: it has more than 10000 buckets"),
        (
            gauge({"asDouble": 1, "attributes": [attribute("a", stringValue="x" * 16_384)]}),
            "g: its name and attributes have more than 16384 characters",
        ),
    ],
)
def test_a_point_that_cannot_be_a_record_is_rejected_alone(metric: Any, reason: str) -> None:
    found = read(gauge(), metric, gauge())
    assert (len(found.items), found.rejected, found.reason) == (2, 1, reason)


def test_the_first_reasons_are_said() -> None:
    found = read(*(gauge({}, {}, name=f"g{number}") for number in range(5)))
    assert (found.rejected, found.reason) == (10, "; ".join(f"g{number}: a point has no value" for number in range(3)))


def test_a_metric_without_data_has_no_points() -> None:
    assert read({"name": "x"}).items == []


def test_the_limits_on_points_and_bytes() -> None:
    assert len(read(gauge(*[{"asInt": 1}] * 3), most_points=3).items) == 3
    with pytest.raises(TooLargeError, match="more points than the buffer holds"):
        read(gauge(*[{"asInt": 1}] * 4), most_points=3)
    long = [attribute("a", stringValue="x" * 10_000)]
    size = read(gauge(), resource=long).size
    assert size > 10_000
    assert len(read(gauge(), resource=long, most_bytes=size).items) == 1
    with pytest.raises(TooLargeError):
        read(gauge(), resource=long, most_bytes=size - 1)
