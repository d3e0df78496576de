"""``GET /metrics`` of the REST API."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sluiceway.metrics.beans import CONNECT, OWN, Bean, encode_beans
from sluiceway.metrics.collector import MetricsCollector
from sluiceway.metrics.server import MetricsServer
from sluiceway.rest.metrics_routes import driver_beans
from support.rest_replay import Connect

OF_TASK = Bean(CONNECT, "sink-task-metrics", {"connector": "s", "task": "0"}, {"sink-record-read-total": 12.0})
OLD_STATUS = Bean(CONNECT, "connector-metrics", {"connector": "s"}, {"status": "failed"})
OLD_AGE = Bean(OWN, "connector-metrics", {"connector": "s"}, {"heartbeat-age-ms": 3.0})
OLD_TASK = Bean(CONNECT, "connector-task-metrics", {"connector": "s", "task": "1"}, {"status": "failed"})
LIVE_TASK = Bean(CONNECT, "connector-task-metrics", {"connector": "s", "task": "0"}, {"status": "running", "batch-size-max": 1.0})


@pytest.fixture
def driver() -> Iterator[str]:
    server = MetricsServer(
        "127.0.0.1", 0, MetricsCollector(), lambda _received: [OF_TASK, OLD_STATUS, OLD_AGE, OLD_TASK, LIVE_TASK]
    )
    yield server.url("127.0.0.1")
    server.close()


def test_the_metrics_of_all_drivers_and_the_statuses_of_all_connectors(
    connect: Connect, driver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = {"name": "s", "connector.class": "FileStreamSink", "file": "f", "topics": "t"}
    assert connect.http.post("/connectors", json={"name": "s", "config": config}).status_code == 201
    monkeypatch.setattr(type(connect.status), "metrics_urls", lambda _store, _since: [driver, "http://127.0.0.1:9"])
    answer = connect.http.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    assert 'kafka_connect_sink_task_sink_record_read_total{connector="s",task="0"} 12.0' in answer.text
    assert "kafka_connect_worker_connector_count 1.0" in answer.text
    assert answer.text.count("kafka_connect_connector_status{") == 2
    assert 'kafka_connect_connector_status{connector="s",status="running",task="0"} 1.0' in answer.text
    assert 'status="failed"' not in answer.text, "the REST API knows the statuses itself"
    assert "sluiceway_connector_heartbeat_age_ms" not in answer.text


def test_the_metrics_of_one_connector(connect: Connect, driver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("s", "u"):
        config = {"name": name, "connector.class": "FileStreamSink", "file": "f", "topics": "t"}
        assert connect.http.post("/connectors", json={"name": name, "config": config}).status_code == 201
    monkeypatch.setattr(type(connect.status), "metrics_urls", lambda _store, _since: [driver])
    one, other = (connect.http.get("/metrics", params={"connector": name}).text for name in ("s", "u"))
    assert 'kafka_connect_sink_task_sink_record_read_total{connector="s",task="0"} 12.0' in one
    assert 'connector="u"' not in one
    assert 'connector="s"' not in other
    assert 'connector="u"' in other


def test_openmetrics_other_names_and_a_wrong_one(connect: Connect) -> None:
    accept = {"accept": "application/openmetrics-text; version=1.0.0"}
    assert connect.http.get("/metrics", headers=accept).text.endswith("# EOF\n")
    assert "kafka_connect_connect_worker_metrics_task_count" in connect.http.get("/metrics?names=jmx").text
    assert connect.http.get("/metrics?names=x").status_code == 400


def test_nothing_but_drivers_is_asked(tmp_path: Path) -> None:
    beans = tmp_path / "metrics" / "beans"
    beans.parent.mkdir()
    beans.write_bytes(encode_beans([OF_TASK]))
    assert driver_beans([]) == []
    assert driver_beans([tmp_path.as_uri()]) == []
