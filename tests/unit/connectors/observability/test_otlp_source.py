"""The OTLP source with real connections: requests and answers, limits, acknowledgements, the end, and the SDK."""

from __future__ import annotations

import builtins
import gzip
import json
import logging
import socket
import ssl
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.rpc import status_pb2
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.metrics.v1.metrics_pb2 import Gauge, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, MetricExportResult, MetricsData

from sluiceway.api import ExactlyOnceSupport
from sluiceway.connectors.observability import OtlpSourceConnector
from sluiceway.connectors.observability.otlp_config import otlp_options
from sluiceway.errors import ConfigError, ConnectError, MissingToolError
from sluiceway.installation import install_command
from sluiceway.stack.ports import free_port
from sluiceway.testing import SourceConnectorContract
from support.certificates import Authority
from support.eventually import LIMIT, NEVER, eventually
from support.listening_sources import HOST, JSON, PATH, PROTOBUF, Posting, Reply, otlp, post

FUTURE = 4_000_000_000_000_000_000  # nanoseconds: in 2096


def request(*values: float, name: str = "g", time: int = 0) -> ExportMetricsServiceRequest:
    points = [NumberDataPoint(as_double=value, time_unix_nano=time) for value in values]
    metric = Metric(name=name, gauge=Gauge(data_points=points))
    return ExportMetricsServiceRequest(resource_metrics=[ResourceMetrics(scope_metrics=[ScopeMetrics(metrics=[metric])])])


def body(*values: float, **more: Any) -> bytes:
    return request(*values, **more).SerializeToString()


def why(reply: Reply) -> str:
    """Return the reason of an error, whose body must be a Status."""
    if reply.headers["Content-Type"] == JSON:
        return json.loads(reply.body)["message"]
    assert reply.headers["Content-Type"] == PROTOBUF
    return status_pb2.Status.FromString(reply.body).message


def test_a_request_is_records_with_keys_and_no_offsets() -> None:
    with otlp() as source:
        reply = post(source.port, body(1, 2))
        values = source.polled(2)
    assert (reply.status, reply.headers["Content-Type"]) == (200, PROTOBUF)
    assert not ExportMetricsServiceResponse.FromString(reply.body).HasField("partial_success")
    assert [value["value"] for value in values] == [1.0, 2.0]
    record = source.records[0]
    assert (record.topic, record.key, record.source_partition, record.source_offset) == ("t", "g", None, None)
    assert record.timestamp == values[0]["timestamp"]
    assert (source.metric("requests"), source.metric("points-received"), source.metric("points-waiting")) == (1, 2, 0)


def test_a_time_in_the_future_is_not_that_of_the_record() -> None:
    with otlp() as source:
        assert post(source.port, body(1, time=FUTURE)).status == 200
        [value] = source.polled(1)
    assert value["timestamp"] == FUTURE // 10**6
    assert source.records[0].timestamp is not None
    assert source.records[0].timestamp < value["timestamp"]


def test_json_is_read_and_answered() -> None:
    ids = {
        "traceId": "5B8EFFF798038103D269B633813FC60C",
        "spanId": "eee19b7ec3c1b174",
    }  # not Base64, as protobuf's JSON has bytes
    point = {"asDouble": 5, "exemplars": [{**ids, "asInt": "7", "timeUnixNano": "1000000"}, {"asDouble": 1}, {}]}
    metric = {"name": "j", "gauge": {"dataPoints": [point]}, "ofTheFuture": 1}
    document = json.dumps({"resourceMetrics": [{"scopeMetrics": [{"metrics": [metric]}]}]})
    with otlp() as source:
        reply = post(source.port, document.encode(), f"{JSON}; charset=utf-8")
        [value] = source.polled(1)
    assert (reply.status, reply.headers["Content-Type"], json.loads(reply.body)) == (200, JSON, {})
    assert (value["name"], value["value"]) == ("j", 5.0)
    labels = {"trace_id": "5b8efff798038103d269b633813fc60c", "span_id": "eee19b7ec3c1b174"}
    assert [(each["labels"], each["value"], each["timestamp"]) for each in value["exemplars"]] == [
        (labels, 7.0, 1),
        ({}, 1.0, None),
    ]


@pytest.mark.parametrize("kind", [PROTOBUF, JSON])
def test_points_that_are_rejected_are_a_partial_success(kind: str) -> None:
    sent = request(1)
    sent.resource_metrics[0].scope_metrics[0].metrics[0].gauge.data_points.add()
    document = '{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"g","gauge":{"dataPoints":[{"asDouble":1},{}]}}]}]}]}'
    with otlp() as source:
        reply = post(source.port, sent.SerializeToString() if kind == PROTOBUF else document.encode(), kind)
        source.polled(1)
        assert (source.metric("points-rejected"), source.metric("points-received")) == (1, 1)
    assert reply.status == 200
    if kind == JSON:
        told = json.loads(reply.body)["partialSuccess"]
        assert told == {"rejectedDataPoints": "1", "errorMessage": "g: a point has no value"}
    else:
        partial = ExportMetricsServiceResponse.FromString(reply.body).partial_success
        assert (partial.rejected_data_points, partial.error_message) == (1, "g: a point has no value")


@pytest.mark.parametrize("acknowledge", ["received", "delivered"])
def test_a_request_without_points_waits_for_nothing(acknowledge: str) -> None:
    with otlp(acknowledge=acknowledge) as source:
        assert post(source.port, b"").status == 200
        assert source.poll() == []


def members(content: bytes) -> bytes:
    """Return gzip of two members."""
    return gzip.compress(content[:5], mtime=0) + gzip.compress(content[5:])


@pytest.mark.parametrize("pack", [gzip.compress, members])
def test_gzip_is_unpacked(pack: Any) -> None:
    with otlp() as source:
        assert post(source.port, pack(body(1)), Content_Encoding="gzip").status == 200
        source.polled(1)


def test_a_body_in_chunks_is_read_and_its_connection_kept() -> None:
    content = body(*range(100))
    with otlp() as source, socket.create_connection((HOST, source.port), LIMIT) as client:
        chunks = b"".join(b"%x;a=b\r\n%s\r\n" % (len(part), part) for part in (content[:7], content[7:]))
        head = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: {PROTOBUF}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        for _ in range(2):
            client.sendall(head + chunks + b"0\r\nTrailer: x\r\n\r\n")
            answer = client.recv(65536)
            assert answer.startswith(b"HTTP/1.1 200 ")
        source.polled(200)


DEEP = b'{"resourceMetrics":[{"resource":{"attributes":[{"key":"k","value":' + b'{"arrayValue":{"values":[' * 600


@pytest.mark.parametrize(
    ("content", "more", "status", "message"),
    [
        (b"\xff\xff", {}, 400, "the body is no ExportMetricsServiceRequest"),
        (b"{", {"kind": JSON}, 400, "the body is no ExportMetricsServiceRequest"),
        (b"\xff", {"kind": JSON}, 400, "the body is no ExportMetricsServiceRequest"),
        (b'{"resourceMetrics":5}', {"kind": JSON}, 400, "the body is no ExportMetricsServiceRequest"),
        (DEEP, {"kind": JSON}, 400, "the body is no ExportMetricsServiceRequest"),
        (b"[" * 20_000, {"kind": JSON}, 400, "the body is no ExportMetricsServiceRequest"),
        (b"no gzip", {"Content_Encoding": "gzip"}, 400, "the body is not gzip"),
        (gzip.compress(b"x" * 100, mtime=0)[:-9], {"Content_Encoding": "gzip"}, 400, "the body's gzip ends too early"),
        (zlib.compress(b"x"), {"Content_Encoding": "deflate"}, 415, "Content-Encoding must be gzip, or none"),
        (b"", {"kind": "text/plain"}, 415, "Content-Type must be application/x-protobuf or application/json"),
        (b"", {"kind": None}, 415, "Content-Type must be application/x-protobuf or application/json"),
        (b"", {"path": "/v1/traces"}, 404, "metrics are posted to /v1/metrics"),
        (b"", {"method": "GET"}, 405, "metrics are sent with POST"),
        (b"", {"Content_Length": "x"}, 400, "Content-Length is not a number"),
        (b"", {"Content_Length": "-1"}, 400, "Content-Length is not a number"),
        (b"", {"Transfer_Encoding": "gzip"}, 400, "a body must have either a Content-Length or the Transfer-Encoding chunked"),
        (b"x" * 20_001, {}, 413, "the body has more than 20000 bytes (otlp.max.body.bytes)"),
        ([b"x" * 15_000] * 2, {}, 413, "the body has more than 20000 bytes (otlp.max.body.bytes)"),
        (
            gzip.compress(b"x" * 20_001, mtime=0),
            {"Content_Encoding": "gzip"},
            413,
            "the body has more than 20000 bytes when unpacked",
        ),
        (body(*range(101)), {}, 413, "has more points than the buffer holds: 100 points"),
    ],
)
def test_bad_requests_are_refused_with_a_status(content: Any, more: dict[str, Any], status: int, message: str) -> None:
    with otlp(max_body_bytes="20000", buffer_points="100") as source:
        reply = post(source.port, content, **more)
        assert (reply.status, message in why(reply)) == (status, True), why(reply)
        assert post(source.port, body(1)).status == 200, "the next request is answered"
        source.polled(1)


def test_a_chunk_that_is_none_is_refused() -> None:
    head = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: {PROTOBUF}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    for chunk in (b"-1\r\n\r\n", b"0x1\r\na\r\n", b"1\r\nab\r\n", b"\r\n\r\n"):
        with otlp() as source, socket.create_connection((HOST, source.port), LIMIT) as client:
            client.sendall(head + chunk)
            assert client.recv(65536).startswith(b"HTTP/1.1 400 "), chunk


def test_a_refused_body_is_not_the_next_request() -> None:
    """A connection is closed whose body was not read: what is left of it might be read as a request."""
    smuggled = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: {PROTOBUF}\r\nContent-Length: 0\r\n\r\n".encode()
    head = f"POST /other HTTP/1.1\r\nHost: x\r\nContent-Length: {len(smuggled)}\r\n\r\n".encode()
    with otlp() as source, socket.create_connection((HOST, source.port), LIMIT) as client:
        client.sendall(head + smuggled)
        received = b"".join(iter(lambda: client.recv(65536), b""))
    assert received.startswith(b"HTTP/1.1 404 ")
    assert received.count(b"HTTP/1.1") == 1
    assert b"Connection: close" in received


@pytest.mark.parametrize(
    ("config", "good", "scheme"),
    [
        ({"bearer_token": "hush"}, "bearer hush", "Bearer"),
        ({"username": "me", "password": "hüsh"}, "Basic bWU6aMO8c2g=", "Basic"),
    ],
)
def test_credentials_are_asked_for(config: dict[str, str], good: str, scheme: str) -> None:
    with otlp(**config) as source:
        for bad in ("", "Bearer no", f"x{good}", good[:-1]):
            reply = post(source.port, body(1), Authorization=bad) if bad else post(source.port, body(1))
            assert (reply.status, reply.headers["WWW-Authenticate"]) == (401, scheme)
            assert "hush" not in why(reply)
        assert post(source.port, body(1), Authorization=good).status == 200
        source.polled(1)
        assert source.metric("points-received") == 1


def test_https(tmp_path: Path) -> None:
    authority = Authority("tests")
    certificate, key = authority.issue(HOST)
    (tmp_path / "cert.pem").write_text(certificate)
    (tmp_path / "key.pem").write_text(key)
    files = {"ssl_certificate_location": str(tmp_path / "cert.pem"), "ssl_key_location": str(tmp_path / "key.pem")}
    trusting = ssl.create_default_context(cadata=authority.pem)
    with otlp(**files) as source:
        with socket.create_connection((HOST, source.port), LIMIT) as silent:  # no handshake: nobody else waits for it
            assert post(source.port, body(1), tls=trusting).status == 200
            silent.sendall(b"no TLS\r\n\r\n")
        reply = post(source.port, body(1), "text/plain", tls=trusting)
        assert reply.status == 415
        source.polled(1)
    (tmp_path / "key.pem").write_text(Authority("others").issue(HOST)[1])
    with pytest.raises(ConfigError, match="cannot be used"), otlp(**files):
        pass


# ---- the buffer, and acknowledgements


def test_a_full_buffer_refuses_with_retry_after_until_there_is_room(caplog: pytest.LogCaptureFixture) -> None:
    with otlp(buffer_points="3") as source:
        assert post(source.port, body(1, 2)).status == 200
        reply = post(source.port, body(3, 4))
        assert (reply.status, reply.headers["Retry-After"]) == (503, "1")
        assert why(reply) == "the buffer is full: send the request again"
        assert post(source.port, body(5)).status == 200, "a smaller one has room"
        assert (source.metric("points-refused"), source.metric("requests-refused")) == (2, 1)
        assert source.metric("points-waiting") == 3
        source.polled(3)
        assert post(source.port, body(3, 4)).status == 200
        source.polled(5)
    assert [value["value"] for value in source.values()] == [1.0, 2.0, 5.0, 3.0, 4.0]
    warnings = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    assert [each[:43] for each in warnings] == ["Clients were asked to send 2 points again: "]


def test_delivered_answers_when_kafka_has_all_points() -> None:
    with otlp(acknowledge="delivered") as source:
        sending = Posting(lambda: post(source.port, body(1, 2)))
        source.polled(2)
        source.acknowledge(source.records[:1])
        assert source.poll() == []
        assert not sending.done
        source.task.commit_record(source.records[1], -1, -1)  # a transform has dropped it
        assert sending.reply().status == 200
    assert source.metric("points-received") == 2


def test_delivered_does_not_wait_for_ever_and_takes_back_what_was_not_polled() -> None:
    with otlp(acknowledge="delivered", acknowledge_timeout_ms="50") as source:
        reply = post(source.port, body(1))
        assert (reply.status, reply.headers["Retry-After"]) == (503, "1")
        assert why(reply).startswith("Kafka has not acknowledged the points in time")
        assert source.poll() == [], "the client's next attempt would be a second copy"
        assert source.metric("points-refused") == 1


def test_a_poll_does_not_wait_while_acknowledgements_are_due(monkeypatch: pytest.MonkeyPatch) -> None:
    with otlp(acknowledge="delivered") as source:
        sending = Posting(lambda: post(source.port, body(1)))
        source.polled(1)
        waits: list[float] = []
        monkeypatch.setattr(source.context, "wait", waits.append)
        assert source.poll() == []
        assert waits == []
        source.acknowledge(source.records)
        assert sending.reply().status == 200
        source.poll()
        assert len(waits) == 1


def test_delivered_refuses_at_the_end_what_kafka_does_not_have(caplog: pytest.LogCaptureFixture) -> None:
    with otlp(acknowledge="delivered", acknowledge_timeout_ms=str(round(NEVER * 1000))) as source:
        polled = Posting(lambda: post(source.port, body(1)))
        source.polled(1)
        waiting = Posting(lambda: post(source.port, body(2)))
        eventually(lambda: source.metric("points-waiting") == 1)
        source.task.stop()
        for each in (polled, waiting):
            reply = each.reply()
            assert (reply.status, reply.headers["Retry-After"]) == (503, "1")
        assert source.poll() == []
        assert source.metric("points-lost") == 0
    assert "lost" not in caplog.text


@pytest.mark.parametrize("acknowledge", ["received", "delivered"])
def test_what_was_received_is_records_before_the_task_stops(acknowledge: str) -> None:
    with otlp(acknowledge=acknowledge) as source:
        sending = Posting(lambda: post(source.port, body(1, 2)))
        eventually(lambda: source.metric("points-waiting") == 2)
        drained = list(source.task.drain() or ())
        assert [record.value["value"] for record in drained] == [1, 2]
        reply = post(source.port, body(3))
        assert (reply.status, why(reply)) == (503, "the server is stopping: send the request again")
        source.acknowledge(drained)
        assert sending.reply().status == 200
        assert source.task.drain() is None
        source.task.stop()
        assert source.metric("points-lost") == 0


def test_received_says_at_the_end_how_many_points_are_lost(caplog: pytest.LogCaptureFixture) -> None:
    with otlp() as source:
        post(source.port, body(1))
        source.polled(1)
        post(source.port, body(2, 3))
        post(source.port, body(4))
        source.task.stop()
        source.task.stop()
        assert source.metric("points-lost") == 3
        with pytest.raises(ConnectionError):
            post(source.port, body(5))
    assert [each.getMessage() for each in caplog.records if "lost" in each.getMessage()] == [
        "3 points are lost: they were answered with success, and the task has ended. otlp.acknowledge=delivered loses none."
    ]


def test_one_poll_takes_all_that_was_received() -> None:
    """A poll may be the last one before the end."""
    with otlp() as source:
        for _ in range(3):
            assert post(source.port, body(*range(9_000))).status == 200
        assert len(source.poll()) == 27_000
        source.task.stop()
        assert source.metric("points-lost") == 0


def test_the_end_closes_idle_connections_and_ends_all_threads() -> None:
    with otlp() as source:
        idle = [socket.create_connection((HOST, source.port), LIMIT) for _ in range(3)]
        eventually(lambda: threads() == ["http-listener", "http-request", "http-request", "http-request"])
        source.task.stop()
        assert threads() == []
        assert [client.recv(1) for client in idle] == [b""] * 3
        for client in idle:
            client.close()


def threads() -> list[str]:
    return sorted(each.name for each in threading.enumerate() if each.name.startswith("http-"))


def test_connections_above_the_limit_are_refused() -> None:
    with otlp(max_connections="1") as source:
        with socket.create_connection((HOST, source.port), LIMIT):
            eventually(lambda: "http-request" in threads())
            with socket.create_connection((HOST, source.port), LIMIT) as another:
                assert another.recv(65536).startswith(b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\n")
            assert source.metric("connections-refused") == 1
        eventually(lambda: "http-request" not in threads())
        assert post(source.port, b"").status == 200


def test_a_port_that_is_in_use_is_said() -> None:
    with otlp() as source:
        port = str(source.port)
        with pytest.raises(ConnectError, match=f"Cannot listen on {HOST}:{port}: Address already in use"), otlp(port=port):
            pass


# ---- OpenTelemetry's SDK


def measured() -> MetricsData:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    meter = provider.get_meter("shop", "1.2")
    meter.create_counter("orders", "1", "Orders.").add(3, {"status": 200})
    meter.create_histogram("wait").record(3.5)
    found = reader.get_metrics_data()
    provider.shutdown()
    assert found is not None
    return found


def exporter(port: int, **more: Any) -> OTLPMetricExporter:
    return OTLPMetricExporter(f"http://{HOST}:{port}{PATH}", timeout=int(LIMIT), **more)


@pytest.mark.parametrize("compression", list(Compression)[::2])
def test_the_sdk_exports(compression: Compression) -> None:
    data = measured()
    with otlp(bearer_token="hush", metric_help="true") as source:
        sender = exporter(source.port, compression=compression, headers={"Authorization": "Bearer hush"})
        assert sender.export(data) is MetricExportResult.SUCCESS
        orders, wait = source.polled(2)
    assert (orders["name"], orders["type"], orders["value"], orders["help"]) == ("orders", "counter", 3.0, "Orders.")
    assert (orders["labels"]["status"], orders["labels"]["otel.scope.name"]) == ("200", "shop")
    assert orders["labels"]["telemetry.sdk.language"] == "python"
    assert (wait["histogram"]["count"], wait["histogram"]["max"]) == (1.0, 3.5)


def test_the_sdk_sends_again_when_the_buffer_was_full() -> None:
    with otlp(buffer_points="3") as source:
        sender = exporter(source.port)
        assert sender.export(measured()) is MetricExportResult.SUCCESS
        sending = Posting(lambda: sender.export(measured()))
        eventually(lambda: source.metric("requests-refused") >= 1)
        source.polled(4)
        assert sending.reply() is MetricExportResult.SUCCESS
    assert [value["name"] for value in source.values()] == ["orders", "wait"] * 2


def test_delivered_loses_nothing_when_a_task_ends_before_kafka_has_the_records() -> None:
    port = free_port()
    with otlp(acknowledge="delivered", port=str(port)) as first:
        sending = Posting(lambda: exporter(port).export(measured()))
        first.polled(2)
        first.acknowledge(first.records[:1])
    assert not sending.done
    with otlp(acknowledge="delivered", port=str(port)) as second:
        second.polled(2)
        second.acknowledge(second.records)
        assert sending.reply() is MetricExportResult.SUCCESS
    kept = first.acknowledged + second.acknowledged
    assert [record.value["name"] for record in kept] == ["orders", "orders", "wait"], "at least once"


# ---- keys


def test_without_its_package_the_task_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *arguments: Any, **more: Any) -> Any:
        if name.startswith("opentelemetry.proto"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, *arguments, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingToolError) as raised, otlp():
        pass
    assert f"Run: {install_command('otlp')} in the Python environment of the tasks." in str(raised.value)


@pytest.mark.parametrize(
    ("config", "key", "message"),
    [
        ({"otlp.username": "me"}, "otlp.password", "set both, or neither"),
        ({"otlp.password": "hush"}, "otlp.username", "set both, or neither"),
        (
            {"otlp.username": "me", "otlp.password": "hush", "otlp.bearer.token": "hush"},
            "otlp.bearer.token",
            "cannot be combined",
        ),
        ({"otlp.username": "m:e", "otlp.password": "hush"}, "otlp.username", "must not have a colon"),
        ({"otlp.ssl.certificate.location": "/a"}, "otlp.ssl.key.location", "set both, or neither"),
        ({"otlp.acknowledge": "soon"}, "otlp.acknowledge", "soon"),
        ({"otlp.port": "65536"}, "otlp.port", "65535"),
    ],
)
def test_bad_configs_are_refused(config: dict[str, str], key: str, message: str) -> None:
    given = {"name": "n", "topic": "t", **config}
    found = OtlpSourceConnector.validate(given)
    assert {name for name, each in found.items() if each.errors} == {key}
    assert message in found[key].errors[0]
    assert "hush" not in found[key].errors[0]
    with pytest.raises(ConfigError):
        OtlpSourceConnector().start(given)


def test_one_task_listens_without_exactly_once_and_offsets() -> None:
    connector = OtlpSourceConnector()
    config = {"topic": "t", "otlp.bearer.token": "hush"}
    connector.start(config)
    assert connector.task_configs(5) == [config]
    assert connector.exactly_once_support(config) is ExactlyOnceSupport.UNSUPPORTED
    assert "listens" in connector.start_effects(config)
    assert "cannot be asked for again" in connector.position_elsewhere(config)
    assert "hush" not in repr(otlp_options(config))


class TestContract(SourceConnectorContract):
    connector_class = OtlpSourceConnector
    record_count = 2
    records_within = poll_within = LIMIT
    resumable = False

    @pytest.fixture
    def config(self) -> Iterator[dict[str, str]]:
        """A client sends again and again, also while no task listens."""
        port, ended = free_port(), threading.Event()

        def send() -> None:
            while not ended.wait(0.02):
                try:
                    post(port, body(1, 2))
                except OSError:  # nobody listens
                    continue

        sender = threading.Thread(target=send)
        sender.start()
        yield {"topic": "t", "otlp.port": str(port)}
        ended.set()
        sender.join()
