"""Tests of the spans of source and sink tasks, with the SDK's exporter in memory."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from confluent_kafka import Message
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider

from sluiceway.api import SourceRecord
from sluiceway.data import STRING_SCHEMA, Header
from sluiceway.kafka import clients
from sluiceway.runtime.source import record_sender
from sluiceway.runtime.source.trace_headers import with_trace_headers
from sluiceway.storage.model import TaskId
from sluiceway.telemetry.task_spans import PRODUCE, TaskSpans, task_spans
from sluiceway.telemetry.tracing import using
from support.engine import RunningTask
from support.engine_connectors import SINK, SOURCE, script
from support.eventually import eventually
from unit.runtime.fake_clients import FakeProducer
from unit.runtime.fake_consumer import FakeConsumer
from unit.telemetry.conftest import Spans

WORKER = {"key.converter": "StringConverter", "value.converter": "StringConverter"}
OTHER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture(autouse=True)
def clients_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeProducer.made.clear()
    FakeConsumer.made.clear()
    monkeypatch.setattr(record_sender, "producer", FakeProducer)
    monkeypatch.setattr(clients, "consumer", FakeConsumer)


def record(value: str, offset: int, *headers: Header) -> SourceRecord:
    return SourceRecord({"file": "p"}, {"position": offset}, "t", value, STRING_SCHEMA, headers=headers)


def run_source(*steps: Any, **config: str) -> RunningTask:
    script("src", *steps)
    config = {"name": "src", "connector.class": SOURCE, **{key.replace("_", "."): value for key, value in config.items()}}
    with RunningTask(config, WORKER, bounded=True) as task:
        task.join()
    return task


def message(offset: int, *headers: tuple[str, bytes]) -> Message:
    return Message(topic="t", partition=0, offset=offset, value=b"v", timestamp=(1, 1000), headers=list(headers))


def run_sink(monkeypatch: pytest.MonkeyPatch, *messages: Message) -> None:
    monkeypatch.setattr(FakeConsumer, "messages", list(messages))
    made = script("snk")
    with RunningTask({"name": "snk", "connector.class": SINK, "topics": "t"}, WORKER) as task:
        eventually(lambda: len(made.taken) == len(messages), what="all messages")
        task.stop()


def sent_headers() -> list[Any]:
    return [options.get("headers") for *_, options in FakeProducer.made[-1].sent]


def trace_of(span: ReadableSpan) -> str:
    assert span.context is not None
    return f"{span.context.trace_id:032x}"


def parent_of(span: ReadableSpan) -> int | None:
    return None if span.parent is None else span.parent.span_id


def test_a_sources_batch_is_a_span_with_poll_transform_and_produce_in_it(spans: Spans) -> None:
    run_source([record("a", 1), record("b", 2)], None, [record("c", 3)])
    assert spans.names().count("batch") == 2, "an empty poll has no span"
    first = spans.named("batch")[0]
    assert first.parent is None
    assert first.attributes is not None
    assert first.attributes["messaging.batch.message_count"] == 2
    assert (first.attributes["sluiceway.connector"], first.attributes["sluiceway.task"]) == ("src", 0)
    assert first.context is not None
    children = [span for span in spans.all() if parent_of(span) == first.context.span_id]
    assert [span.name for span in children] == ["poll", "transform", "produce"]
    assert all((span.end_time or 0) >= (span.start_time or 0) >= (first.start_time or 0) for span in children)
    assert spans.the("task start").parent is None
    assert spans.the("commit").status.is_unset
    assert spans.names()[-1] == "task stop"


def test_a_failure_is_the_error_of_its_span(spans: Spans) -> None:
    task = run_source([record("a", 1)], ValueError("no disk"))
    assert task.join().failed
    script("src", [record("x" * 2000, 1)])
    assert run_source([record("x" * 2000, 1)]).join().failed
    failed = [span.name for span in spans.all() if not span.status.is_unset and not span.status.is_ok]
    assert failed == ["produce", "batch"]


def test_records_carry_the_trace_of_their_batch_only_when_asked(spans: Spans) -> None:
    run_source([record("a", 1)])
    assert sent_headers() == [None]
    run_source([record("a", 1), record("b", 2, Header("h", "x"))], sluiceway_trace_headers="true")
    produce = spans.named("produce")[-1]
    assert produce.context is not None
    trace = ("traceparent", f"00-{trace_of(produce)}-{produce.context.span_id:016x}-{produce.context.trace_flags:02x}".encode())
    assert sent_headers() == [[trace], [("h", b"x"), trace]]


def test_a_record_that_carries_a_trace_keeps_it(spans: Spans) -> None:
    run_source([record("a", 1, Header("traceparent", OTHER))], sluiceway_trace_headers="true")
    assert sent_headers() == [[("traceparent", OTHER.encode())]]


def test_the_fast_paths_of_the_sender_carry_the_trace_too(spans: Spans) -> None:
    made = task_spans({"sluiceway.trace.headers": "true"}, TaskId("c", 0), sink=False)
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    class Client:
        flush = poll = purge = None

        def produce(self, *arguments: Any, **options: Any) -> None:
            calls.append((arguments, options))

    client: Any = with_trace_headers(made, Client())  # type: ignore[arg-type]
    with made.batch(0.1, 1), made.step(PRODUCE, 1):
        client.produce("t", b"v")
        client.produce("t", b"v", None, 0, None, None, 5, {"h": b"x"})
    (values, options), (packed, none) = calls
    [(name, trace)] = options["headers"]
    assert (values, name, none) == (("t", b"v"), "traceparent", {})
    assert packed == ("t", b"v", None, 0, None, None, 5, [("h", b"x"), ("traceparent", trace)])
    assert made.headers == (), "the headers of one batch only"


def test_a_sink_continues_the_trace_of_its_records(spans: Spans, monkeypatch: pytest.MonkeyPatch) -> None:
    second = OTHER.replace("b7ad6b7169203331", "00f067aa0ba902b7")
    run_sink(monkeypatch, message(0, ("traceparent", OTHER.encode())), message(1), message(2, ("traceparent", second.encode())))
    batch = spans.the("batch")
    assert trace_of(batch) == "0af7651916cd43dd8448eb211c80319c"
    assert parent_of(batch) == 0xB7AD6B7169203331
    assert [link.context.span_id for link in batch.links] == [0x00F067AA0BA902B7]
    assert batch.context is not None
    children = [span.name for span in spans.all() if parent_of(span) == batch.context.span_id]
    assert children == ["poll", "transform", "put"]
    assert {"task start", "commit", "task stop"} <= set(spans.names())


def test_a_sink_without_a_trace_in_its_records_begins_one(spans: Spans, monkeypatch: pytest.MonkeyPatch) -> None:
    run_sink(monkeypatch, message(0, ("traceparent", b"nonsense")), message(1))
    assert spans.the("batch").parent is None


def test_few_messages_of_a_large_batch_are_looked_at() -> None:
    looks: list[int] = []

    class Counted:
        def headers(self) -> None:
            looks.append(1)

    with using(TracerProvider(shutdown_on_exit=False)):
        made = task_spans({}, TaskId("c", 0), sink=True)
        for count in (1, 15, 16, 17, 4000):
            looks.clear()
            with made.batch(0.0, count, [Counted()] * count):
                pass
            assert 1 <= len(looks) <= 17, count


def test_without_traces_there_is_nothing_to_pay_for() -> None:
    with using(None):
        made = task_spans({"sluiceway.trace.headers": "true"}, TaskId("c", 0), sink=False)
    assert type(made) is TaskSpans
    client: Any = object()
    assert with_trace_headers(made, client) is client


def test_without_traces_opentelemetry_is_not_imported() -> None:
    code = (
        "import sys; import sluiceway.runtime.source.worker_source_task, sluiceway.worker.connector_runner;"
        "from sluiceway.telemetry.tracing import span, tracing; span('x', {}); assert tracing() is None;"
        "sys.exit(any(name.startswith('opentelemetry') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, env=_without_otel()).returncode == 0


def _without_otel() -> dict[str, str]:
    import os

    return {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}


def test_a_commit_that_fails_is_an_error(spans: Spans) -> None:
    made = task_spans({}, TaskId("c", 0), sink=True)
    made.committed(0.5, succeeded=False)
    commit = spans.the("commit")
    assert not commit.status.is_ok
    assert 0.5e9 <= (commit.end_time or 0) - (commit.start_time or 0) < 0.6e9
    eventually(lambda: spans.names() == ["commit"], what="the span")
