"""Tests of the hook kafka_connect with connections from Airflow's environment."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from airflow.models.connection import Connection

from sluiceway.errors import ConfigError
from sluiceway.provider.hooks.kafka_connect import KafkaConnectHook, kafka_overrides

CONN_ID = "a_cluster"


class _Connect(BaseHTTPRequestHandler):
    """A REST API that requires a login."""

    seen: list[str | None] = []

    def do_GET(self) -> None:
        self.seen.append(self.headers.get("Authorization"))
        allowed = self.headers.get("Authorization") is not None
        body: Any = {"error_code": 401, "message": "Who are you?"}
        if allowed:
            body = {"version": "4.3.0"} if self.path == "/" else ["one", "two"]
        self.send_response(200 if allowed else 401)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the base class's name)
        pass


@pytest.fixture
def server() -> Iterator[str]:
    _Connect.seen = []
    http = HTTPServer(("127.0.0.1", 0), _Connect)
    thread = threading.Thread(target=http.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{http.server_port}"
    http.shutdown()
    thread.join()
    http.server_close()


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch) -> Any:
    def store(**fields: Any) -> KafkaConnectHook:
        connection = Connection(conn_id=CONN_ID, conn_type="kafka_connect", **fields)
        # The test button passes the connection as a URI.
        monkeypatch.setenv(f"AIRFLOW_CONN_{CONN_ID.upper()}", connection.get_uri())
        return KafkaConnectHook(CONN_ID)

    return store


def test_the_test_button_shows_version_and_number_of_connectors(stored: Any, server: str) -> None:
    hook = stored(host=server, login="me", password="pass:w@rd")
    assert hook.test_connection() == (True, f"REST API {server}: version 4.3.0, 2 connectors")
    assert _Connect.seen == ["Basic bWU6cGFzczp3QHJk"] * 2


def test_a_token_is_sent_instead_of_the_login(stored: Any, server: str) -> None:
    assert stored(host=server, login="me", password="x", extra=json.dumps({"rest.token": "abc"})).test_connection()[0]
    assert set(_Connect.seen) == {"Bearer abc"}


def test_the_test_button_shows_the_servers_error(stored: Any, server: str) -> None:
    assert stored(host=server).test_connection() == (False, "Who are you?")


def test_the_test_button_names_the_missing_fields(stored: Any) -> None:
    good, text = stored(extra=json.dumps({"group.id": "g"})).test_connection()
    assert not good
    assert "neither a REST API nor bootstrap servers" in text


def test_several_servers_are_read_back_from_airflows_storage(stored: Any) -> None:
    hook = stored(host="https://a:8443,https://b:8443")
    assert hook.connection().servers == ("https://a:8443", "https://b:8443")


def test_the_connections_properties_override_the_worker_file(stored: Any) -> None:
    hook = stored(extra=json.dumps({"bootstrap.servers": "b:9092", "group.id": "mine"}))
    base = {"group.id": "files", "key.converter": "org.apache.kafka.connect.storage.StringConverter"}
    worker = hook.worker(base)
    assert (worker.bootstrap_servers, worker.group_id) == ("b:9092", "mine")
    assert worker.raw["key.converter"] == base["key.converter"]


def test_a_rest_client_requires_an_address(stored: Any) -> None:
    with pytest.raises(ConfigError, match="'a_cluster' has no REST API address"):
        stored().get_conn()


def test_a_tasks_overrides_come_from_its_connection_and_secrets_are_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    hidden: list[str] = []
    monkeypatch.setattr("airflow.sdk.log.mask_secret", lambda value, *_: hidden.append(value))
    extra = {"bootstrap.servers": "k:1", "sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": "hunter2"}
    for kind in ("kafka", "kafka_connect"):
        hidden.clear()
        monkeypatch.setenv("AIRFLOW_CONN_K", json.dumps({"conn_type": kind, "extra": extra}))
        found = kafka_overrides("k")
        assert found["bootstrap.servers"] == "k:1"
        assert "hunter2" in hidden
        assert found["sasl.jaas.config"] in hidden
    assert kafka_overrides(None) == {}


def test_a_private_key_in_a_connection_is_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    hidden: list[object] = []
    monkeypatch.setattr("airflow.sdk.log.mask_secret", lambda value, *_: hidden.append(value))
    extra = {"bootstrap.servers": "k:1", "ssl.keystore.key": "-----BEGIN KEY", "ssl.truststore.location": "/ca.pem"}
    monkeypatch.setenv("AIRFLOW_CONN_K", json.dumps({"conn_type": "kafka", "extra": extra}))
    kafka_overrides("k")
    texts = {value for value in hidden if isinstance(value, str)}  # Airflow masks what it knows by name in the extra
    assert texts == {"-----BEGIN KEY"}


def test_a_missing_connection_or_one_of_another_type_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_PG", json.dumps({"conn_type": "postgres", "host": "h", "password": "hunter2"}))
    with pytest.raises(ConfigError, match="is of type 'postgres'") as raised:
        kafka_overrides("pg")
    assert "hunter2" not in str(raised.value)
    with pytest.raises(ConfigError, match="has no connection 'none'"):
        kafka_overrides("none")
