"""The OTLP sink with real connections: what answers mean, headers, https, several receivers, and configs."""

from __future__ import annotations

import builtins
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsPartialSuccess, ExportMetricsServiceResponse

from sluiceway.api import SinkRecord
from sluiceway.connectors.observability import OtlpSinkConnector
from sluiceway.connectors.observability.otlp_sink import OtlpSinkTask
from sluiceway.connectors.observability.otlp_sink_config import sink_options
from sluiceway.errors import ConfigError, ConnectError, MissingToolError, RetriableError
from sluiceway.installation import install_command
from sluiceway.runtime.memory import MemorySinkContext
from sluiceway.stack.ports import free_port
from sluiceway.testing import SinkConnectorContract
from support.certificates import Authority
from support.listening_sources import HOST, PROTOBUF, Running, otlp
from support.metric_targets import Answer as Page
from support.metric_targets import answering
from support.otlp import Answer, OtlpReceiver

PATH = "/v1/metrics"
OF_PROTOBUF = {"Content-Type": PROTOBUF}


class Sink:
    """A task, and its context."""

    def __init__(self, *urls: str, reports: bool = True, **keys: str) -> None:
        given = {name.replace("_", "."): value for name, value in keys.items()}
        config = {"name": "n", "otlp.endpoints": ",".join(f"{url}{PATH}" for url in urls), **given}
        self.context = MemorySinkContext(config, reports=reports)
        self.task = OtlpSinkTask()
        self.task.initialize(self.context)
        self.task.start(config)

    def put(self, *values: Any) -> None:
        self.task.put([record(number, value) for number, value in enumerate(values)])

    @property
    def reported(self) -> list[tuple[int, str]]:
        return [(each.kafka_offset, str(error)) for each, error in self.context.reported]


def record(offset: int, value: Any) -> SinkRecord:
    return SinkRecord("t", 0, offset, value, None, None, None)


def gauge(value: float, name: str = "g", **labels: str) -> dict[str, Any]:
    return {"name": name, "type": "gauge", "labels": labels, "timestamp": 1000, "value": value}


@contextmanager
def running(*urls: str, **keys: Any) -> Iterator[Sink]:
    sink = Sink(*urls, **keys)
    try:
        yield sink
    finally:
        sink.task.stop()


def values_of(request: Any) -> list[float]:
    return [
        point.as_double
        for resource in request.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        for point in metric.gauge.data_points
    ]


def taken(receiver: OtlpReceiver) -> list[list[float]]:
    return [values_of(each) for each in receiver.requests]


def partial(rejected: int, reason: str = "too old") -> Answer:
    told = ExportMetricsPartialSuccess(rejected_data_points=rejected, error_message=reason)
    return Answer(200, ExportMetricsServiceResponse(partial_success=told).SerializeToString(), OF_PROTOBUF)


def refusing(*bad: float, status: int = 400) -> Callable[[Any], Answer]:
    def answer(request: Any) -> Answer:
        found = sorted(set(bad) & set(values_of(request)))
        return Answer(status, Status(message=f"bad: {found}").SerializeToString(), OF_PROTOBUF) if found else Answer()

    return answer


# ---- requests


@pytest.mark.parametrize("compression", ["gzip", "none"])
def test_a_put_is_a_request_with_the_headers_of_the_config(compression: str) -> None:
    headers = "Authorization=Bearer%20hush%2C1, X-Scope-OrgID=shop,content-type=text/plain"
    with OtlpReceiver() as receiver, running(receiver.url, otlp_headers=headers, otlp_compression=compression) as sink:
        sink.put(gauge(1), gauge(2))
        sink.put()
    assert taken(receiver) == [[1, 2]]
    [found] = receiver.headers
    assert (found["authorization"], found["x-scope-orgid"], found["content-type"]) == ("Bearer hush,1", "shop", PROTOBUF)
    assert found.get("content-encoding") == (None if compression == "none" else "gzip")


def test_batches_have_at_most_so_many_records() -> None:
    with OtlpReceiver() as receiver, running(receiver.url, batch_size="2") as sink:
        sink.put(gauge(1), gauge(2), gauge(3))
    assert taken(receiver) == [[1, 2], [3]]


def test_tombstones_are_ignored_and_what_is_no_metric_is_reported() -> None:
    with OtlpReceiver() as receiver, running(receiver.url) as sink:
        sink.put(None, "text", {"name": "m"}, gauge(1))
    assert taken(receiver) == [[1]]
    assert [offset for offset, _ in sink.reported] == [1, 2]
    assert "its value is str, not a struct or a map" in sink.reported[0][1]
    assert sink.reported[1][1].startswith("t-0 at offset 2 cannot be sent: OTLP has no counterpart")


def test_https(tmp_path: Path) -> None:
    authority = Authority("tests")
    for name, text in zip(("cert.pem", "key.pem", "ca.pem"), (*authority.issue(HOST), authority.pem), strict=True):
        (tmp_path / name).write_text(text)
    files = {"ssl_certificate_location": str(tmp_path / "cert.pem"), "ssl_key_location": str(tmp_path / "key.pem")}
    with otlp(**files) as source:
        with running(f"https://{HOST}:{source.port}", otlp_ssl_truststore_location=str(tmp_path / "ca.pem")) as sink:
            sink.put(gauge(1))
        assert source.polled(1)[0]["value"] == 1
        with running(f"https://{HOST}:{source.port}") as sink, pytest.raises(ConnectError, match="truststore") as raised:
            sink.put(gauge(1))
        assert not isinstance(raised.value, RetriableError)


# ---- answers


def test_the_point_that_is_refused_is_found_and_the_others_are_sent_once_in_order() -> None:
    with OtlpReceiver(refusing(3, 6)) as receiver, running(receiver.url) as sink:
        sink.put(*(gauge(number) for number in range(10)))
    good = [value for request in taken(receiver) if not {3, 6} & set(request) for value in request]
    assert good == [0, 1, 2, 4, 5, 7, 8, 9]
    assert [offset for offset, _ in sink.reported] == [3, 6]
    assert "was refused: " in sink.reported[0][1]
    assert "HTTP 400: bad: [3.0]" in sink.reported[0][1]


def test_without_a_reporter_a_refused_point_fails_the_task() -> None:
    with OtlpReceiver(refusing(3)) as receiver, running(receiver.url, reports=False) as sink:
        with pytest.raises(ConnectError, match=r"t-0 at offset 1 was refused.*bad") as raised:
            sink.put(gauge(2), gauge(3))
        assert not isinstance(raised.value, RetriableError)


def test_after_a_request_that_was_too_large_the_next_ones_are_smaller() -> None:
    def answer(request: Any) -> Answer:
        return Answer(413 if len(values_of(request)) > 2 else 200)

    with OtlpReceiver(answer) as receiver, running(receiver.url) as sink:
        sink.put(*(gauge(number) for number in range(4)))
        sink.put(*(gauge(number) for number in range(4)))
    assert taken(receiver) == [[0, 1, 2, 3], [0, 1], [2, 3], [0, 1], [2, 3]]
    assert not sink.reported


@pytest.mark.parametrize("status", [429, 502, 503, 504, 500, 408])
def test_a_receiver_that_is_busy_or_not_ready_gets_the_request_again_after_the_time_it_asks_for(status: int) -> None:
    answers = [Answer(status, b"full", {"Retry-After": "7"}), Answer(status), Answer()]
    with OtlpReceiver(lambda _request: answers.pop(0)) as receiver, running(receiver.url) as sink:
        with pytest.raises(RetriableError, match=f"HTTP {status}: full"):
            sink.put(gauge(1))
        with pytest.raises(RetriableError):
            sink.put(gauge(1))
        sink.put(gauge(1))
    assert taken(receiver) == [[1], [1], [1]]
    assert sink.context.timeouts == [7000, 200]


@pytest.mark.parametrize(("given", "least", "most"), [("date", 50, 61), ("86400", 300, 300), ("soon", 0, 1), ("nan", 0, 1)])
def test_retry_after_may_be_a_date_and_is_not_followed_for_ever(given: str, least: int, most: int) -> None:
    if given == "date":
        given = format_datetime(datetime.now(timezone.utc) + timedelta(seconds=60), usegmt=True)
    answer = Answer(429, headers={"Retry-After": given})
    with OtlpReceiver(lambda _request: answer) as receiver, running(receiver.url) as sink, pytest.raises(RetriableError):
        sink.put(gauge(1))
    assert least * 1000 <= sink.context.timeouts[0] <= most * 1000


def test_what_was_sent_before_a_receiver_went_away_is_not_sent_again() -> None:
    gone = [True]

    def answer(request: Any) -> Answer:
        values = values_of(request)
        if len(values) == 4:
            return Answer(400)
        return Answer(503) if 3 in values and gone else Answer()

    with OtlpReceiver(answer) as receiver, running(receiver.url) as sink:
        values = [gauge(number, f"m{number}") for number in range(4)]
        with pytest.raises(RetriableError, match="2 of 4 records later"):
            sink.put(*values)
        gone.clear()
        sink.put(*values)
    assert taken(receiver) == [[0, 1, 2, 3], [0, 1], [2, 3], [2, 3]]


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (401, "Check otlp.headers"),
        (403, "needs the right to write metrics"),
        (404, "Check the path in otlp.endpoints"),
        (405, "Check the path in otlp.endpoints"),
        (415, "unless otlp.compression=none"),
        (418, "Check otlp.endpoints"),
        (302, "points to http://elsewhere. Name that"),
    ],
)
def test_errors_of_the_config_fail_the_task_and_the_validation(status: int, advice: str) -> None:
    answer = Answer(status, b"no", {"Location": "http://elsewhere"} if status == 302 else {})
    with OtlpReceiver(lambda _request: answer) as receiver, running(receiver.url, otlp_headers="Authorization=hush") as sink:
        with pytest.raises(ConnectError, match=f"HTTP {status}: no.*{advice}") as raised:
            sink.put(gauge(1))
        found = OtlpSinkConnector.validate(dict(sink.context.configs))
    assert not isinstance(raised.value, RetriableError)
    assert "hush" not in str(raised.value)
    wrong = "otlp.headers" if status in (401, 403) else "otlp.endpoints"
    assert {name: len(each.errors) for name, each in found.items() if each.errors} == {wrong: 1}


def test_an_answer_that_is_not_of_otlp_fails_the_task() -> None:
    told = pytest.raises(ConnectError, match="no receiver of OTLP")
    with OtlpReceiver(lambda _request: Answer(200, b"\xff", OF_PROTOBUF)) as receiver, running(receiver.url) as sink, told:
        sink.put(gauge(1))


# ---- partial success


def test_points_that_are_rejected_among_others_fail_the_task() -> None:
    told = pytest.raises(ConnectError, match=r"rejected 1 of 2 points, and does not tell which: too old\. Set errors")
    with OtlpReceiver(lambda _request: partial(1)) as receiver, running(receiver.url) as sink, told as raised:
        sink.put(gauge(1), gauge(2))
    assert not isinstance(raised.value, RetriableError)


def test_with_tolerance_points_that_are_rejected_are_counted_and_not_sent_again(caplog: pytest.LogCaptureFixture) -> None:
    with OtlpReceiver(lambda _request: partial(1)) as receiver, running(receiver.url, errors_tolerance="all") as sink:
        sink.put(gauge(1), gauge(2))
        assert sink.task.metrics()["points-rejected"] == 1
    assert taken(receiver) == [[1, 2]]
    assert not sink.reported
    assert "rejected 1 of 2 points" in caplog.text


def test_requests_of_which_all_points_are_rejected_are_reported() -> None:
    def answer(request: Any) -> Answer:
        return partial(int(2 in values_of(request)))

    with OtlpReceiver(answer) as receiver, running(receiver.url, batch_size="1", errors_tolerance="all") as sink:
        sink.put(gauge(1), gauge(2), gauge(3))
    assert sink.reported == [(1, "The record t-0 at offset 1 was refused: too old")]


def test_a_warning_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "sluiceway.connectors.observability")
    with OtlpReceiver(lambda _request: partial(0, "use another name")) as receiver, running(receiver.url) as sink:
        sink.put(gauge(1))
        sink.put(gauge(2))
    assert [each.getMessage() for each in caplog.records] == ["The receiver has taken the points, and says: use another name"]


# ---- receivers that are away


def test_another_receiver_is_used_while_one_is_away_or_not_ready() -> None:
    away = f"http://{HOST}:{free_port()}"
    starting, receiver = OtlpReceiver(lambda _request: Answer(503)), OtlpReceiver()
    with starting, receiver, running(away, starting.url, receiver.url) as sink:
        sink.put(gauge(1))
        sink.put(gauge(2))
    assert (taken(starting), taken(receiver)) == ([[1]], [[1], [2]])


def test_a_receiver_that_is_away_is_waited_for_and_not_for_ever() -> None:
    port = free_port()
    with running(f"http://{HOST}:{port}", sluiceway_unreachable_timeout_ms="0") as sink:
        with pytest.raises(ConnectError, match=r"does not answer: ConnectError.*sluiceway.unreachable.timeout.ms") as raised:
            sink.put(gauge(1))
        assert not isinstance(raised.value, RetriableError)
    with running(f"http://{HOST}:{port}") as sink:
        with pytest.raises(RetriableError, match="does not answer"):
            sink.put(gauge(1))
        with OtlpReceiver(port=port) as receiver:
            sink.put(gauge(1))
    assert taken(receiver) == [[1]]


def test_a_receiver_that_does_not_answer_in_time_gets_the_request_again() -> None:
    with otlp(acknowledge="delivered") as source:  # it answers when Kafka has the points
        told = pytest.raises(RetriableError, match=r"Raise otlp\.timeout\.ms")
        with running(f"http://{HOST}:{source.port}", otlp_timeout_ms="50") as sink, told:
            sink.put(gauge(1))


# ---- round trip


def test_what_otlp_source_received_is_sent_on_to_another_one() -> None:
    labels = {"service.name": "shop", "otel.scope.name": "lib", "status": "200"}
    histogram = {"count": 3, "sum": 4.5, "bounds": [1.0], "counts": [2], "min": 0.5, "max": 3.0}
    exemplars = [{"labels": {"trace_id": "0af7651916cd43dd8448eb211c80319c", "k": "v"}, "value": 1.5, "timestamp": 5}]
    common = {"labels": labels, "timestamp": 2000, "start_timestamp": 1000}
    summary = {"count": 2, "sum": 3, "quantiles": [0.5], "values": ["NaN"]}
    values = [
        {**common, "name": "c", "type": "counter", "value": 2, "temporality": "delta", "exemplars": exemplars},
        {**common, "name": "u", "type": "updowncounter", "value": -2, "temporality": "cumulative"},
        {**common, "name": "h", "type": "histogram", "histogram": histogram, "temporality": "delta", "exemplars": exemplars},
        {**common, "name": "s", "type": "summary", "summary": summary},
        {"labels": labels, "timestamp": 3000, "name": "c", "type": "counter", "stale": True},
    ]
    with otlp() as first, otlp() as second:
        send(first, values)
        send(second, [each.value for each in first.records])
    kept = [sorted((each.key, repr(each.value)) for each in source.records) for source in (first, second)]
    assert kept[0] == kept[1]
    assert len({key for key, _value in kept[0]}) == 4
    assert [each.value["type"] for each in first.records if each.value["stale"]] == ["counter"]


def send(source: Running, values: Sequence[Any]) -> None:
    with running(f"http://{HOST}:{source.port}") as sink:
        sink.put(*values)
    source.polled(len(values))


# ---- configs


def test_without_its_package_the_task_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *arguments: Any, **more: Any) -> Any:
        if name.startswith("opentelemetry.proto"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, *arguments, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingToolError) as raised:
        Sink("http://a")
    assert f"Run: {install_command('otlp')} in the Python environment of the tasks." in str(raised.value)
    found = OtlpSinkConnector.validate({"otlp.endpoints": f"http://a{PATH}"})  # the server of REST need not have it
    assert not any(each.errors for each in found.values())


@pytest.mark.parametrize(
    ("config", "key", "message"),
    [
        ({"otlp.endpoints": ""}, "otlp.endpoints", "must have the URL"),
        ({"otlp.endpoints": "collector:4318"}, "otlp.endpoints", "must be a URL"),
        ({"otlp.endpoints": "http://collector:4318"}, "otlp.endpoints", "needs the path too"),
        ({"otlp.endpoints": "http://me:hush@collector/v1/metrics"}, "otlp.endpoints", "must not have a login"),
        ({"otlp.endpoints": "http://collector/v1/metrics?key=hush"}, "otlp.endpoints", "must be without ? and #"),
        ({"otlp.headers": "hush"}, "otlp.headers", "must be name=value"),
        ({"otlp.headers": "a=hush%0Ab=c"}, "otlp.headers", "must be name=value"),
        ({"otlp.compression": "zstd"}, "otlp.compression", "zstd"),
        ({"batch.size": "0"}, "batch.size", "at least 1"),
    ],
)
def test_bad_configs_are_refused(config: Mapping[str, str], key: str, message: str) -> None:
    given = {"name": "n", "otlp.endpoints": f"http://{HOST}:1{PATH}", **config}
    found = OtlpSinkConnector.validate(given)
    assert {name for name, each in found.items() if each.errors} == {key}
    assert message in found[key].errors[0]
    assert "hush" not in found[key].errors[0]
    with pytest.raises(ConfigError):
        OtlpSinkConnector().start(given)


def test_a_reference_may_be_to_all_of_the_headers() -> None:
    config = {"otlp.endpoints": f"http://a{PATH}", "otlp.headers": "${file:/run/secrets:headers}"}
    assert not any(each.errors for each in OtlpSinkConnector.check(config).values())


def test_options_show_no_headers() -> None:
    options = sink_options({"otlp.endpoints": f"http://a{PATH}", "otlp.headers": "Authorization=hush"})
    assert options.headers == {"Authorization": "hush"}
    assert "hush" not in repr(options)


def test_validation_asks_the_receiver_and_takes_one_that_is_away() -> None:
    with OtlpReceiver() as receiver:
        found = OtlpSinkConnector.validate({"otlp.endpoints": f"{receiver.url}{PATH}"})
        assert not any(each.errors for each in found.values())
        assert taken(receiver) == [[]]
    found = OtlpSinkConnector.validate({"otlp.endpoints": f"{receiver.url}{PATH}"})
    assert not any(each.errors for each in found.values())


def test_validation_finds_a_server_without_tls() -> None:
    with answering(lambda _request: Page("")) as address:
        found = OtlpSinkConnector.validate({"otlp.endpoints": f"https://{address}{PATH}"})
    assert "Begin its URL in otlp.endpoints with http://" in found["otlp.endpoints"].errors[0]


class TestContract(SinkConnectorContract):
    connector_class = OtlpSinkConnector

    @pytest.fixture
    def config(self) -> Iterator[dict[str, str]]:
        with OtlpReceiver() as receiver:
            yield {"otlp.endpoints": f"{receiver.url}{PATH}"}
