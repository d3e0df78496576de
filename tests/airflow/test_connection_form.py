"""The connection type in Airflow's API server: the fields of the form and the test button."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from airflow.api_fastapi.app import create_app, get_auth_manager
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from airflow.utils.db import initdb
from fastapi.testclient import TestClient

from sluiceway.provider.hooks.connection_type import FORM_FIELDS

pytestmark = pytest.mark.airflow


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    initdb()
    with TestClient(create_app()) as client:
        token = get_auth_manager().generate_jwt(SimpleAuthManagerUser(username="admin", role="admin"))
        client.headers["Authorization"] = f"Bearer {token}"
        yield client


@pytest.fixture
def button(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    monkeypatch.setenv("AIRFLOW__CORE__TEST_CONNECTION", "Enabled")

    def press(**fields: Any) -> dict[str, Any]:
        body = {"connection_id": "a_cluster", "conn_type": "kafka_connect", **fields}
        answer = client.post("/api/v2/connections/test", json=body)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    return press


def test_the_form_has_the_connections_fields_and_hides_unused_ones(client: TestClient) -> None:
    [form] = [each for each in client.get("/ui/connections/hook_meta").json() if each["connection_type"] == "kafka_connect"]
    assert form["hook_name"] == "Kafka Connect"
    assert set(form["extra_fields"]) == set(FORM_FIELDS)
    assert form["extra_fields"]["sasl.password"]["schema"]["format"] == "password"
    assert form["standard_fields"]["host"]["title"] == "REST API"
    assert form["standard_fields"]["port"]["hidden"]


def test_the_test_button_connects_to_the_brokers_and_creates_nothing(
    button: Callable[..., dict[str, Any]], kafka_bootstrap: str, unique: Callable[[str], str]
) -> None:
    topics = {f"{each}.storage.topic": unique(each) for each in ("config", "offset", "status")}
    extra = json.dumps({"bootstrap.servers": kafka_bootstrap, **topics})
    said = f"Kafka {kafka_bootstrap}: no topic {', '.join(topics.values())} yet (created with the first connector)"
    for _ in range(2):
        assert button(extra=extra) == {"status": True, "message": said}


def test_the_test_button_reports_an_error(button: Callable[..., dict[str, Any]]) -> None:
    answer = button(extra=json.dumps({"bootstrap.servers": "127.0.0.1:9"}))
    assert not answer["status"]
    assert "Cannot reach Kafka at 127.0.0.1:9" in answer["message"]
    answer = button(host="http://127.0.0.1:9")
    assert not answer["status"]
    assert "http://127.0.0.1:9" in answer["message"]


def test_a_stored_password_is_not_shown_again(client: TestClient) -> None:
    extra = json.dumps({"sasl.username": "me", "sasl.password": "hidden1", "rest.token": "hidden2"})
    stored = {"connection_id": "kept", "conn_type": "kafka_connect", "host": "http://h", "password": "hidden3", "extra": extra}
    client.post("/api/v2/connections", json=stored).raise_for_status()
    shown = client.get("/api/v2/connections/kept").text
    assert "hidden" not in shown
    assert "sasl.username" in shown
