"""Traces of a source and a sink from a real driver on a local Spark master, by a real Kafka, to a receiver of OTLP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from sluiceway.herder import Herder
from sluiceway.spark.session import local_conf
from sluiceway.storage.factory import open_stores
from support.driver import submitted_application, worker_of, worker_properties, write_properties
from support.eventually import eventually
from support.kafka import Kafka
from support.otlp import OtlpReceiver, attributes

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.long]

LINES = 50


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[OtlpReceiver]:
    with OtlpReceiver() as made:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", made.url)
        monkeypatch.setenv("OTEL_METRICS_EXPORTER", "none")
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "200")
        yield made


def test_a_record_is_one_trace_from_the_sources_poll_to_the_sinks_put(
    receiver: OtlpReceiver, kafka: Kafka, tmp_path: Path, topic: str
) -> None:
    properties = worker_properties(kafka.bootstrap, f"{topic}-group", **{"offset.flush.interval.ms": "500"})
    lines, out = tmp_path / "lines.txt", tmp_path / "out.txt"
    lines.write_text("".join(f"line {number}\n" for number in range(LINES)))
    shared = {"sluiceway.application": "traced"}
    source = {"connector.class": "FileStreamSource", "file": str(lines), "topic": topic, "sluiceway.trace.headers": "true"}
    sink = {"connector.class": "FileStreamSink", "file": str(out), "topics": topic}
    worker = worker_of(properties)
    with open_stores(worker) as stores:
        herder = Herder(worker, stores.config, stores.status, stores.offsets)
        herder.put_config("lines", {"name": "lines", **source, **shared})
        herder.put_config("out", {"name": "out", **sink, **shared})
        driver = submitted_application(
            "traced", write_properties(tmp_path / "worker.properties", properties), tmp_path, master="local[4]", conf=local_conf()
        )
        driver.start()
        try:

            def named(name: str, connector: str) -> list[Span]:
                spans = [span for span in receiver.spans() if span.name == name]
                return [span for span in spans if attributes(span)["sluiceway.connector"] == connector]

            eventually(lambda: named("put", "out") and named("commit", "out"), what="the sink's spans")
            eventually(lambda: named("commit", "lines"), what="the source's commit")
        finally:
            driver.stop(timeout=60)
        assert len(out.read_text().splitlines()) == LINES
        names = {span.name for span in receiver.spans()}
        assert {"connector begin", "Connector.start", "task start", "poll", "transform", "produce", "connector release"} <= names
        (produced,) = named("produce", "lines")
        put = named("put", "out")[0]
        batch = next(span for span in named("batch", "out") if span.span_id == put.parent_span_id)
        assert batch.trace_id == put.trace_id == produced.trace_id, "one trace from the source's poll to the sink's put"
        assert batch.parent_span_id == produced.span_id
        [(_, value)] = [header for header in kafka.read(topic, LINES)[0].headers() or [] if header[0] == "traceparent"]
        assert isinstance(value, bytes)
        assert value.decode().split("-")[1:3] == [produced.trace_id.hex(), produced.span_id.hex()]
        assert {header["path"] for header in receiver.headers} == {"/v1/traces"}
