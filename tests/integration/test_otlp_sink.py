"""The OTLP sink on a real broker: from OtlpSource by a topic to a receiver, which is killed, and to one that refuses points."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import Gauge, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from sluiceway.connectors.observability.otlp_points import OtlpPoints
from sluiceway.stack.ports import free_port
from support.engine import RunningTask
from support.eventually import eventually
from support.kafka import Kafka
from support.listening_sources import post
from support.otlp import Answer, OtlpReceiver

pytestmark = pytest.mark.kafka
JSON = "org.apache.kafka.connect.json.JsonConverter"
STRINGS = "org.apache.kafka.connect.storage.StringConverter"
PATH = "/v1/metrics"


def request(series: str, *values: int) -> bytes:
    points = [
        NumberDataPoint(as_double=value, time_unix_nano=value * 10**9, attributes=[attribute("k", series)]) for value in values
    ]
    metric = Metric(name="m", unit="s", gauge=Gauge(data_points=points))
    scope = ScopeMetrics(scope=InstrumentationScope(name="lib"), metrics=[metric])
    resource = Resource(attributes=[attribute("service.name", "shop"), attribute("host.name", "a")])
    made = ExportMetricsServiceRequest(resource_metrics=[ResourceMetrics(resource=resource, scope_metrics=[scope])])
    return made.SerializeToString()


def attribute(key: str, value: str) -> KeyValue:
    return KeyValue(key=key, value=AnyValue(string_value=value))


def received(requests: Iterable[Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the points of requests as OtlpSource reads them, with their keys."""
    found: list[tuple[str, dict[str, Any]]] = []
    for each in list(requests):
        points = OtlpPoints(each, 0, with_help=True, most_points=10**6, most_bytes=2**30)
        found += [(item.key, dict(item.value)) for item in points.items]
    return found


def sink_config(topic: str, url: str, **more: str) -> dict[str, str]:
    return {
        "name": f"sink-{topic}",
        "connector.class": "OtlpSink",
        "topics": topic,
        "otlp.endpoints": f"{url}{PATH}",
        "key.converter": STRINGS,
        "value.converter": JSON,
        "value.converter.schemas.enable": "false",
        **more,
    }


def numbers(found: Sequence[tuple[str, dict[str, Any]]], series: str) -> list[int]:
    return [int(value["value"]) for key, value in found if f'k="{series}"' in key]


def test_points_reach_another_receiver_as_they_came_in_the_order_of_their_series_also_while_it_is_away(
    kafka: Kafka, topic: str
) -> None:
    port, source_port = free_port(), free_port()
    source = {
        "name": f"source-{topic}",
        "connector.class": "OtlpSource",
        "topic": topic,
        "otlp.port": str(source_port),
        "key.converter": STRINGS,
        "value.converter": JSON,
        "value.converter.schemas.enable": "false",
    }
    config = sink_config(topic, f"http://127.0.0.1:{port}", **{"batch.size": "3"})
    with RunningTask(source, kafka.worker()), RunningTask(config, kafka.worker(), sink=True) as sending:

        def send(*values: int) -> None:
            for value in values:
                for series in ("a", "b"):
                    assert post(source_port, request(series, value)).status == 200

        eventually(lambda: is_listening(source_port), what="the source")
        with OtlpReceiver(port=port) as first:
            send(*range(1, 11))
            eventually(lambda: len(received(first.requests)) >= 20)
        send(*range(11, 21))
        eventually(lambda: "does not answer" in (sending.reports.trace or ""), what="the reason in the status")
        with OtlpReceiver(port=port) as second:
            eventually(lambda: set(numbers(received(second.requests), "b")) >= set(range(11, 21)))
            found = received([*first.requests, *second.requests])
    for series in ("a", "b"):
        assert numbers(found, series) == list(range(1, 21))
    key, value = found[0]
    assert key == 'm{host.name="a",k="a",otel.scope.name="lib",service.name="shop"}'
    assert (value["type"], value["unit"], value["timestamp"]) == ("gauge", "s", 1000)


def is_listening(port: int) -> bool:
    try:
        return post(port, b"").status == 200
    except OSError:
        return False


def test_points_that_are_refused_are_in_the_dead_letter_queue(kafka: Kafka, topic: str) -> None:
    def answer(request: Any) -> Answer:
        values = [value["value"] for _key, value in received([request])]
        return Answer(400, b"out of order") if {3.0, 7.0} & set(values) else Answer()

    for number in range(10):
        value = {"name": "m", "type": "gauge", "labels": {"k": str(number)}, "timestamp": 1000, "value": number}
        kafka.produce(topic, json.dumps(value), key=str(number))
    queue = kafka.create(f"{topic}-bad")
    errors = {
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": queue,
        "errors.deadletterqueue.topic.replication.factor": "1",
        "errors.deadletterqueue.context.headers.enable": "true",
    }
    with OtlpReceiver(answer) as receiver, RunningTask(sink_config(topic, receiver.url, **errors), kafka.worker()):
        bad = kafka.read(queue, 2)
    assert kafka.committed(f"connect-sink-{topic}") == {(topic, 0): 10}
    assert sorted(each.key() for each in bad) == [b"3", b"7"]
    headers = dict(bad[0].headers())
    assert b"out of order" in headers["__connect.errors.exception.message"]
    sent = [value["value"] for each in receiver.requests for _key, value in received([each])]
    assert sorted(set(sent) - {3.0, 7.0}) == [0, 1, 2, 4, 5, 6, 8, 9]
