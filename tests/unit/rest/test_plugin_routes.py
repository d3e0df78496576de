"""Previews by REST: limits, the right to see a connector's offsets, and the form of the answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from fastapi import Depends, Request
from fastapi.testclient import TestClient
from starlette.exceptions import HTTPException

from sluiceway.config.worker import WorkerConfig
from sluiceway.herder import Herder
from sluiceway.preview.request import Limits
from sluiceway.rest import plugin_routes
from sluiceway.rest.app import make_app
from sluiceway.storage.memory import MemoryConfigBackingStore, MemoryStatusBackingStore

PATH = "/connector-plugins/FileStreamSource/config/preview"
CONFIG = {"name": "a", "connector.class": "FileStreamSource", "file": "/f", "topic": "t"}

Calls = list[tuple[Limits, bool]]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    calls: Calls = []

    def preview(_herder: Herder, _config: object, limits: Limits, *, from_beginning: bool) -> dict[str, Any]:
        calls.append((limits, from_beginning))
        return {"records": []}

    monkeypatch.setattr(plugin_routes, "preview", preview)
    return calls


@pytest.fixture
def herder() -> Herder:
    return Herder(WorkerConfig.of({}), MemoryConfigBackingStore(), MemoryStatusBackingStore())


@pytest.fixture
def http(herder: Herder) -> TestClient:
    return TestClient(make_app(lambda: herder))


def test_the_query_sets_the_limits(http: TestClient, calls: Calls) -> None:
    assert http.post(PATH, json=CONFIG).json() == {"records": []}
    assert http.post(f"{PATH}?records=3&seconds=2.5&fromBeginning=true", json=CONFIG).status_code == 200
    assert calls == [(Limits(10, 10.0), False), (Limits(3, 2.5), True)]


@pytest.mark.parametrize("query", ["records=0", "records=101", "records=x", "seconds=0", "seconds=61"])
def test_limits_out_of_range_are_refused(http: TestClient, calls: Calls, query: str) -> None:
    assert http.post(f"{PATH}?{query}", json=CONFIG).status_code == 400
    assert calls == []


def test_another_class_than_that_of_the_path_is_refused(http: TestClient, calls: Calls) -> None:
    assert http.post(PATH, json={**CONFIG, "connector.class": "MockSource"}).status_code == 400
    assert calls == []


class _CreatesOnly:
    """A guard of a user who may create connectors, and change none."""

    def check_config(self, name: str, config: Mapping[str, str | None], stored: Mapping[str, str] | None) -> None:
        if "airflow.dag" in config:
            raise HTTPException(403, "Forbidden")

    def check_preview(self, name: str, config: Mapping[str, str] | None) -> None:
        if config is not None:
            raise HTTPException(403, "Forbidden")


def test_a_connector_that_the_user_may_not_run_is_not_previewed(herder: Herder, calls: Calls) -> None:
    def guard(request: Request) -> None:
        request.state.guard = _CreatesOnly()

    http = TestClient(make_app(lambda: herder, dependencies=[Depends(guard)]))
    assert http.post(PATH, json=CONFIG).status_code == 200
    assert http.post(PATH, json={**CONFIG, "airflow.dag": "d"}).status_code == 403
    herder.create("a", CONFIG)
    assert http.post(PATH, json=CONFIG).status_code == 403
    assert len(calls) == 1
