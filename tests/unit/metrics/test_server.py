"""The driver's server, and tasks that send it their metrics."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import replace

import httpx
import pytest

from sluiceway.errors import ConfigError
from sluiceway.metrics import publisher
from sluiceway.metrics.beans import OWN, Bean, decode_beans, encode_beans
from sluiceway.metrics.collector import MetricsCollector
from sluiceway.metrics.publisher import MetricsTarget, publishing
from sluiceway.metrics.registry import registry
from sluiceway.metrics.server import MetricsServer
from sluiceway.metrics.task_metrics import TaskMetrics
from sluiceway.storage.model import TaskId
from support.eventually import LIMIT, eventually

OF_DRIVER = Bean(OWN, "task-launch-metrics", {"connector": "c", "task": "0"}, {"restarts-total": 2.0})


@pytest.fixture
def server() -> Iterator[MetricsServer]:
    made = MetricsServer("127.0.0.1", 0, MetricsCollector(), lambda received: [OF_DRIVER, *received])
    yield made
    made.close()


def get(server: MetricsServer, path: str, accept: str = "") -> tuple[str, bytes]:
    answer = httpx.get(server.url("127.0.0.1") + path, headers={"accept": accept}).raise_for_status()
    return answer.headers["content-type"], answer.content


def post(target: MetricsTarget, body: bytes) -> int:
    return httpx.post(target.url, content=body, headers={"authorization": f"Bearer {target.token}"}).status_code


def test_a_process_sends_the_metrics_of_its_tasks(server: MetricsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publisher, "PUBLISH_SECONDS", 0.05)
    metrics = TaskMetrics(TaskId("lines", 0), sink=True)
    with registry.task(metrics), publishing(server.target("127.0.0.1")):
        metrics.took(5)
        wanted = b'kafka_connect_sink_task_sink_record_read_total{connector="lines",task="0"} 5.0'
        eventually(lambda: wanted in get(server, "/metrics")[1])
    kind, text = get(server, "/metrics/beans")
    assert kind == "application/json"
    assert OF_DRIVER in decode_beans(text)


def test_the_last_metrics_are_sent_at_the_end_of_a_process(server: MetricsServer) -> None:
    metrics = TaskMetrics(TaskId("brief", 0), sink=True)
    with registry.task(metrics), publishing(server.target("127.0.0.1")):
        metrics.took(3)
    assert b'sink_record_read_total{connector="brief",task="0"} 3.0' in get(server, "/metrics")[1]


def test_a_driver_that_does_not_answer_costs_a_task_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO"), publishing(MetricsTarget("http://127.0.0.1:9/publish", "t")):
        pass
    assert "Cannot send metrics to the driver at http://127.0.0.1:9/publish" in caplog.text


def test_only_the_driver_s_tasks_may_send(server: MetricsServer) -> None:
    target = server.target("127.0.0.1")
    assert post(target, encode_beans([OF_DRIVER])) == 200
    assert post(replace(target, token="guessed"), encode_beans([OF_DRIVER])) == 403
    assert post(target, b"no metrics") == 400
    assert post(replace(target, url=target.url + "s"), b"[]") == 404


def test_the_format_and_the_names_can_be_chosen(server: MetricsServer) -> None:
    kind, text = get(server, "/metrics", "application/openmetrics-text; version=1.0.0")
    assert kind.startswith("application/openmetrics-text")
    assert text.endswith(b"# EOF\n")
    assert b"kafka_connect" not in get(server, "/metrics?names=jmx")[1]
    for path, code in (("/metrics?names=other", 400), ("/", 404)):
        assert httpx.get(server.url("127.0.0.1") + path).status_code == code


def test_an_address_in_use_is_a_config_error(server: MetricsServer) -> None:
    with pytest.raises(ConfigError, match=r"sluiceway\.metrics\.listener"):
        MetricsServer("127.0.0.1", server.port, MetricsCollector(), lambda received: received)


def test_an_ipv6_address_is_in_brackets(server: MetricsServer) -> None:
    assert server.url("::1") == f"http://[::1]:{server.port}"


def test_a_body_is_not_read_without_the_token(server: MetricsServer) -> None:
    """The answer comes although the body never does."""
    target = server.target("127.0.0.1")
    for token, status in (("wrong", 403), ("", 403), ("\u00fc", 403)):
        with socket.create_connection(("127.0.0.1", server.port), timeout=LIMIT) as client:
            head = f"POST /publish HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {token}\r\nContent-Length: 60000000\r\n\r\n"
            client.sendall(head.encode("latin-1"))
            answer = client.makefile("rb").read()
            assert answer.startswith(f"HTTP/1.0 {status} ".encode())
    assert post(target, encode_beans([])) == 200
    for length in ("-1", "x", "9" * 5000):
        with socket.create_connection(("127.0.0.1", server.port), timeout=LIMIT) as client:
            client.sendall(f"POST /publish HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n".encode())
            assert client.makefile("rb").read().startswith(b"HTTP/1.0 404 ")
