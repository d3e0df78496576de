"""Records of metrics as points of OTLP: what comes back from OtlpSource's reader, kinds, times, and what is refused."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from sluiceway.connectors.observability.otlp_points import OtlpPoints
from sluiceway.connectors.observability.otlp_write import OtlpWriter
from sluiceway.connectors.observability.records import (
    METRIC_SCHEMA,
    Exemplar,
    Histogram,
    Point,
    Series,
    Summary,
    metric_struct,
    stale_struct,
)
from sluiceway.converters.json_converter import JsonConverter
from sluiceway.data import Struct
from sluiceway.errors import DataError
from support.otlp import attributes

AT = 1_700_000_000_000
WRITER = OtlpWriter(frozenset({"service.name", "service.namespace"}))

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
names = texts | st.sampled_from(["service.name", "otel.scope.name", "otel.scope.version", "otel.scope.x", "otel.scope.", "job"])
labels = st.dictionaries(names, texts, max_size=5)
numbers = st.floats()
finite = st.floats(allow_nan=False, allow_infinity=False)
times = st.integers(1, 2**63 // 10**6)
counts = st.integers(0, 2**40).map(float)
ids = st.fixed_dictionaries({}, optional={"trace_id": st.just("0af7651916cd43dd8448eb211c80319c"), "span_id": texts})


@st.composite
def histograms(draw: st.DrawFn) -> Histogram:
    bounds = sorted(draw(st.sets(finite.map(lambda each: each or 0.0), max_size=4)))
    parts = [draw(counts) for _ in range(len(bounds) + 1)]
    total, *_ = reversed(cumulative := list(itertools.accumulate(parts)))
    return Histogram(bounds, cumulative[:-1], total, *(draw(st.none() | numbers) for _ in range(3)))


@st.composite
def summaries(draw: st.DrawFn) -> Summary:
    quantiles = sorted(draw(st.sets(st.floats(0, 1).map(lambda each: each or 0.0), max_size=4)))
    return Summary(quantiles, [draw(numbers) for _ in quantiles], draw(counts), draw(numbers))


@st.composite
def records(draw: st.DrawFn) -> Struct:
    """Draw a record of those that OtlpSource makes."""
    kind = draw(st.sampled_from(["counter", "updowncounter", "gauge", "histogram", "summary", "info", "stateset", "unknown"]))
    series = Series.of(draw(texts), kind, draw(labels), draw(st.none() | texts), draw(st.none() | texts))
    if draw(st.integers(0, 4)) == 0:
        return stale_struct(series, draw(times))
    value: Any = draw({"histogram": histograms(), "summary": summaries()}.get(kind, numbers))
    temporality = None
    if kind not in ("gauge", "summary", "unknown"):
        temporality = draw(st.sampled_from(["cumulative", "delta"]))
    exemplars: Sequence[Exemplar] = ()
    if kind != "summary":
        made = st.builds(lambda own, more, *rest: Exemplar({**own, **more}, *rest), ids, labels, numbers, st.none() | times)
        exemplars = draw(st.lists(made, max_size=2))
    return metric_struct(Point(series, value, draw(times), draw(st.none() | times), exemplars, temporality), 0)


def read(*values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return records that were sent, as OtlpSource reads them."""
    body = WRITER.request(map(WRITER.item, values)).SerializeToString()
    request = ExportMetricsServiceRequest.FromString(body)
    found = OtlpPoints(request, AT, with_help=True, most_points=1000, most_bytes=2**30)
    assert (found.rejected, found.reason) == (0, "")
    for item in found.items:
        item.value.validate()
    return [plain(item.value) for item in found.items]


def plain(value: Any) -> Any:
    """Return a record as JSON has it, so that NaN equals NaN."""
    text = JsonConverter()
    text.configure({"schemas.enable": "false"}, is_key=False)
    data = text.from_connect_data("t", METRIC_SCHEMA, value)
    assert data is not None
    return json.loads(data)


@given(records())
def test_what_is_sent_is_what_otlp_source_reads(record: Struct) -> None:
    assert read(record) == [plain(record)]


@given(records())
def test_records_of_json_without_schemas_are_the_same_points(record: Struct) -> None:
    ours, of_json = (WRITER.item(each) for each in (record, plain(record)))
    assert of_json._replace(point=None) == ours._replace(point=None)
    assert str(of_json.point) == str(ours.point)  # as text, NaN equals NaN


@given(st.lists(records(), max_size=8))
def test_all_points_of_a_batch_are_sent_those_of_a_series_in_order(batch: list[Struct]) -> None:
    found = read(*batch)

    def by_series(values: list[dict[str, Any]]) -> dict[str, list[Any]]:
        made: dict[str, list[Any]] = {}
        for each in values:
            own = [each[name] for name in ("name", "type", "unit", "help", "labels", "temporality")]
            made.setdefault(json.dumps(own, sort_keys=True), []).append(each)
        return made

    assert by_series(found) == by_series([plain(each) for each in batch])


def metric(**fields: Any) -> dict[str, Any]:
    return {"name": "m", "type": "gauge", "labels": {}, "timestamp": AT, **fields}


def sent(**fields: Any) -> Any:
    """Return the metric of a record."""
    [resource] = WRITER.request([WRITER.item(metric(**fields))]).resource_metrics
    [scope] = resource.scope_metrics
    [found] = scope.metrics
    return found


@pytest.mark.parametrize(
    ("type_", "monotonic", "origin"),
    [("counter", True, None), ("info", False, "info"), ("stateset", False, "stateset")],
)
def test_types_of_prometheus_that_are_sums(type_: str, monotonic: bool, origin: str | None) -> None:
    found = sent(type=type_, value=1)
    assert (found.sum.is_monotonic, found.sum.aggregation_temporality) == (monotonic, 2)
    assert [each.value.string_value for each in found.metadata if each.key == "prometheus.type"] == ([origin] if origin else [])


def test_types_that_are_gauges() -> None:
    assert sent(type="unknown", value=1).gauge.data_points[0].as_double == 1
    assert sent(type="set", value=3.0, temporality="delta").gauge.data_points[0].as_double == 3


def test_lines_of_statsd() -> None:
    counter = sent(type="counter", value=3.0, temporality="delta", sample_rate=0.1).sum
    assert (counter.aggregation_temporality, counter.data_points[0].as_double) == (1, pytest.approx(30))
    change = sent(type="gauge", value=-2.0, temporality="delta").sum
    assert (change.aggregation_temporality, change.is_monotonic, change.data_points[0].as_double) == (1, False, -2)
    timer = sent(type="timer", value=12.0, temporality="delta", sample_rate=0.3).histogram
    [point] = timer.data_points
    assert (timer.aggregation_temporality, point.count, point.sum, point.min, point.max) == (1, 3, 36, 12, 12)
    assert not point.explicit_bounds
    assert not point.bucket_counts
    parts = {"count": 3.4, "sum": 9.0, "min": 1.0, "max": 4.0, "bounds": [], "counts": []}
    [point] = sent(type="distribution", value=3.0, temporality="delta", histogram=parts).histogram.data_points
    assert (point.count, point.sum, point.min, point.max) == (3, 9, 1, 4)


def test_labels_of_the_resource_the_scope_and_the_point() -> None:
    own = {"service.name": "shop", "otel.scope.name": "lib", "otel.scope.version": "1", "otel.scope.x": "y", "job": "j"}
    [resource] = WRITER.request([WRITER.item(metric(value=1, labels=own))]).resource_metrics
    [scope] = resource.scope_metrics
    assert attributes(resource.resource) == {"service.name": "shop"}
    assert (scope.scope.name, scope.scope.version, attributes(scope.scope)) == ("lib", "1", {"x": "y"})
    assert attributes(scope.metrics[0].gauge.data_points[0]) == {"job": "j"}


def test_series_with_a_resource_in_common_share_it() -> None:
    values = [metric(value=number, labels={"service.name": name, "n": str(number)}) for number in (1, 2) for name in "ab"]
    resources = WRITER.request(map(WRITER.item, values)).resource_metrics
    assert [attributes(each.resource)["service.name"] for each in resources] == ["a", "b"]
    for each in resources:
        [found] = each.scope_metrics[0].metrics
        assert [point.as_double for point in found.gauge.data_points] == [1, 2]


def test_ids_of_traces_that_are_none_stay_labels() -> None:
    given = [{"labels": {"trace_id": "0AF7", "span_id": "b7ad6b7169203331"}, "value": 1, "timestamp": AT}]
    [point] = sent(type="counter", value=1, exemplars=given).sum.data_points
    [exemplar] = point.exemplars
    assert (exemplar.span_id.hex(), exemplar.trace_id) == ("b7ad6b7169203331", b"")
    assert [(each.key, each.value.string_value) for each in exemplar.filtered_attributes] == [("trace_id", "0AF7")]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": ""}, "it has no name"),
        ({"type": "gaugehistogram"}, "no counterpart of its type 'gaugehistogram'"),
        ({"type": None}, "no counterpart of its type 'None'"),
        ({"temporality": "now", "value": 1}, "neither cumulative nor delta"),
        ({}, "it has no value"),
        ({"type": "set", "member": "ann"}, "With statsd.flush.ms"),
        ({"value": "1"}, "'1' is not a number"),
        ({"value": True}, "'True' is not a number"),
        ({"value": 1, "timestamp": "now"}, "a field has a wrong type or value"),
        ({"value": 1, "timestamp": -1}, "a field has a wrong type or value"),
        ({"value": 1, "timestamp": None}, "a field has a wrong type or value"),
        ({"value": 1, "labels": {"a": 1}}, "its labels are not all texts"),
        ({"value": 1, "labels": {"a": "\ud800"}}, "a field has a wrong type or value"),
        ({"value": 1, "labels": ["a"]}, "a field has a wrong type or value"),
        ({"value": 1, "exemplars": [{"labels": {}}]}, "a field has a wrong type or value"),
        ({"type": "histogram"}, "it has no histogram"),
        ({"type": "histogram", "histogram": {"bounds": [], "counts": []}}, "no count of its observations"),
        ({"type": "histogram", "histogram": {"bounds": [1], "counts": [], "count": 1}}, "1 bounds and 0 counts"),
        ({"type": "histogram", "histogram": {"bounds": [1], "counts": [2], "count": 1}}, "counts of its histogram fall"),
        ({"type": "histogram", "histogram": {"bounds": [2, 1], "counts": [1, 1], "count": 1}}, "not ascending"),
        ({"type": "histogram", "histogram": {"bounds": [1], "counts": ["NaN"], "count": 1}}, "a field has a wrong type or value"),
        ({"type": "summary", "summary": {"quantiles": [], "values": []}}, "no count of its observations"),
        ({"type": "summary", "summary": {"count": 1, "quantiles": [1], "values": []}}, "a field has a wrong type or value"),
    ],
)
def test_what_cannot_be_a_point_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        WRITER.item(metric(**fields))


def test_a_struct_without_the_optional_fields_is_a_point() -> None:
    known = METRIC_SCHEMA.fields
    schema = type(METRIC_SCHEMA).struct({each.name: each.schema for each in known if each.name in ("name", "type", "labels")})
    with pytest.raises(DataError, match="wrong type or value: 'timestamp'"):
        WRITER.item(Struct(schema, {"name": "m", "type": "gauge", "labels": {}}))
