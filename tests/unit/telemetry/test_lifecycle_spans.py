"""Tests of the spans of requests and of a driver's connectors."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest
from fastapi.testclient import TestClient

from sluiceway.config.worker import WorkerConfig
from sluiceway.herder import Herder
from sluiceway.rest.app import make_app
from sluiceway.storage.memory import MemoryConfigBackingStore, MemoryStatusBackingStore
from sluiceway.telemetry.tracing import CONNECTOR
from sluiceway.worker import worker_connector
from sluiceway.worker.worker_connector import WorkerConnector
from unit.telemetry.conftest import Spans

CONFIG = {"connector.class": "FileStreamSource", "file": "/tmp/lines", "topic": "t"}  # noqa: S108 (nothing is read)
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def client() -> TestClient:
    worker = WorkerConfig.of({"bootstrap.servers": "none:1"})
    herder = Herder(worker, MemoryConfigBackingStore(), MemoryStatusBackingStore())
    return TestClient(make_app(lambda: herder))


def test_each_request_that_changes_a_connector_is_a_span_of_the_callers_trace(client: TestClient, spans: Spans) -> None:
    assert client.put("/connectors/lines/config", json=CONFIG, headers={"traceparent": TRACE}).status_code == 201
    assert client.put("/connectors/lines/pause").status_code == 202
    assert client.get("/connectors/lines").status_code == 200
    assert client.delete("/connectors/lines").status_code == 204
    assert client.delete("/connectors/lines").status_code == 404
    assert spans.names() == [
        "PUT /connectors/{name}/config",
        "PUT /connectors/{name}/pause",
        "DELETE /connectors/{name}",
        "DELETE /connectors/{name}",
    ]
    put, pause, _, missing = spans.all()
    assert put.attributes is not None
    assert (put.attributes[CONNECTOR], put.attributes["http.response.status_code"]) == ("lines", 201)
    assert put.context is not None
    assert f"{put.context.trace_id:032x}" == TRACE.split("-")[1]
    assert pause.parent is None
    assert missing.status.is_unset, "a wrong request is no failure of the server"


class _Thread:
    """A connector's thread whose calls end at once."""

    version = "1"
    error = None
    reconfigure = False
    valid_until = float("inf")

    def __init__(self, *_: Any) -> None:
        self.started: Future[None] = Future()
        self.started.set_exception(ValueError("no such table")) if self.fails else self.started.set_result(None)

    fails = False

    def stop(self) -> Future[None]:
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def task_configs(self) -> Future[list[dict[str, str]]]:
        return Future()


def _connector(monkeypatch: pytest.MonkeyPatch, *, fails: bool) -> WorkerConnector:
    monkeypatch.setattr(worker_connector, "ConnectorThread", _Thread)
    monkeypatch.setattr(_Thread, "fails", fails)
    opened: Any = None
    return WorkerConnector("lines", WorkerConfig.of({}), opened, lambda: None, lambda done, _seconds: done())


@pytest.mark.parametrize("fails", [False, True])
def test_the_start_and_stop_of_a_connector_are_spans(monkeypatch: pytest.MonkeyPatch, spans: Spans, fails: bool) -> None:
    connector = _connector(monkeypatch, fails=fails)
    connector.start({})
    connector.events()
    connector.stop(1.0)
    assert spans.names() == ["Connector.start", "Connector.stop"]
    start = spans.all()[0]
    assert start.attributes is not None
    assert start.attributes[CONNECTOR] == "lines"
    assert start.status.description == ("ValueError: no such table" if fails else None)
