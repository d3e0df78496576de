"""The REST API under Airflow's API server: who may do what. In this process, with Airflow's simple auth manager."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from airflow.api_fastapi.app import create_app, get_auth_manager
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from airflow.utils.db import initdb
from fastapi.testclient import TestClient

pytestmark = pytest.mark.airflow

CONFIG = {"connector.class": "FileStreamSource", "topic": "t"}
READS = [("GET", "/connectors"), ("GET", "/connectors/c"), ("GET", "/connectors/c/status"), ("GET", "/")]
WRITES = [
    ("POST", "/connectors", {"name": "c", "config": CONFIG}),
    ("PUT", "/connectors/c/config", CONFIG),
    ("PUT", "/connectors/c/pause", None),
    ("PUT", "/connectors/c/resume", None),
    ("PUT", "/connectors/c/stop", None),
    ("DELETE", "/connectors/c", None),
]


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    initdb()
    with TestClient(create_app(), base_url="http://testserver/sluiceway") as client:
        yield client


def _as(role: str) -> dict[str, str]:
    token = get_auth_manager().generate_jwt(SimpleAuthManagerUser(username=role, role=role))
    return {"Authorization": f"Bearer {token}"}


@pytest.mark.parametrize(("method", "path", "body"), [*((*read, None) for read in READS), *WRITES])
def test_nobody_gets_in_without_logging_in(client: TestClient, method: str, path: str, body: object) -> None:
    answer = client.request(method, path, json=body)
    assert answer.status_code == 401
    assert answer.json()["error_code"] == 401


@pytest.mark.parametrize(("method", "path", "body"), WRITES)
def test_who_may_only_look_may_not_change(client: TestClient, method: str, path: str, body: object) -> None:
    answer = client.request(method, path, json=body, headers=_as("viewer"))
    assert answer.status_code == 403
    assert answer.json()["error_code"] == 403


@pytest.mark.parametrize(("method", "path", "body"), [*((*read, None) for read in READS[:3]), *WRITES])
def test_an_administrator_gets_through_to_the_herder(client: TestClient, method: str, path: str, body: object) -> None:
    answer = client.request(method, path, json=body, headers=_as("admin"))
    assert answer.status_code == 500
    # There is no worker file in this test's Airflow, and the message says what to do about it.
    assert "AIRFLOW__SLUICEWAY__WORKER_PROPERTIES" in answer.json()["message"]


@pytest.mark.parametrize(("method", "path"), READS[:3])
def test_a_viewer_may_look(client: TestClient, method: str, path: str) -> None:
    assert client.request(method, path, headers=_as("viewer")).status_code == 500
