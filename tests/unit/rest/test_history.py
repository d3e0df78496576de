"""The history of connectors by REST: who, from where, and what; and rollbacks."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import httpx
import pytest

from sluiceway.api import TopicPartition
from sluiceway.storage.model import State
from support.rest_replay import Connect
from unit.rest.servers import PARTITION, Start

SOURCE = {"connector.class": "FileStreamSource", "file": "/f", "topic": "t"}
HEADERS = {"Sluiceway-User": "bob", "User-Agent": "curl/8"}


@pytest.fixture
def connect() -> Connect:
    return Connect(places=[PARTITION, TopicPartition("t", 1)])


def history(connect: Connect, name: str = "s") -> list[dict[str, Any]]:
    answer = connect.http.get(f"/connectors/{name}/history")
    assert answer.status_code == 200, answer.text
    document = answer.json()
    assert document["name"] == name
    changes: list[dict[str, Any]] = document["history"]
    return changes


def test_each_change_is_recorded_with_its_author(connect: Connect) -> None:
    http = connect.http
    http.put("/connectors/s/config", json=SOURCE, headers=HEADERS)
    http.patch("/connectors/s/config", json={"topic": "u", "file": None}, headers=HEADERS)
    http.put("/connectors/s/stop")
    http.put("/connectors/s/stop")
    http.delete("/connectors/s")
    created, patched, stopped, deleted = history(connect)
    who = {"user": "bob", "authenticated": False, "address": "testclient", "client": "curl/8", "note": None}
    assert created == who | {
        "version": 1,
        "timestamp": created["timestamp"],
        "change": "created",
        "config": SOURCE | {"name": "s"},
        "edits": [],
        "state": {"before": None, "after": "STARTED"},
    }
    assert patched["edits"] == [
        {"key": "file", "before": "/f", "after": None},
        {"key": "topic", "before": "t", "after": "u"},
    ]
    assert (stopped["change"], stopped["state"]) == ("state", {"before": "STARTED", "after": "STOPPED"})
    assert stopped["user"] is None
    assert (deleted["change"], deleted["config"]) == ("deleted", None)


def test_offsets_are_recorded_with_those_before(connect: Connect) -> None:
    http = connect.http
    connect.make("s", SOURCE, State.STOPPED)
    for position in (3, 7):
        edit = {"partition": {"filename": "/f"}, "offset": {"position": position}}
        assert http.patch("/connectors/s/offsets", json={"offsets": [edit]}).status_code == 200
    http.delete("/connectors/s/offsets")
    partition = {"filename": "/f"}
    assert [each["offsets"] for each in history(connect)] == [
        [{"partition": partition, "before": None, "after": {"position": 3}}],
        [{"partition": partition, "before": {"position": 3}, "after": {"position": 7}}],
        [{"partition": partition, "before": {"position": 7}, "after": None}],
    ]


def test_a_sinks_offsets_are_recorded(connect: Connect) -> None:
    connect.make("k", {"connector.class": "FileStreamSink", "topics": "t", "file": "/f"}, State.STOPPED)
    partition = {"kafka_topic": "t", "kafka_partition": 0}
    connect.http.patch("/connectors/k/offsets", json={"offsets": [{"partition": partition, "offset": {"kafka_offset": 5}}]})
    [change] = history(connect, "k")
    assert change["offsets"] == [{"partition": partition, "before": None, "after": {"kafka_offset": 5}}]


def test_a_rollback_puts_the_earlier_config_and_is_recorded(connect: Connect) -> None:
    http = connect.http
    for topic in ("t", "u"):
        http.put("/connectors/s/config", json=SOURCE | {"topic": topic, "db.password": f"secret-{topic}"})
    answer = http.post("/connectors/s/rollback", json={"version": 1})
    assert answer.status_code == 200
    assert answer.json()["config"] == SOURCE | {"name": "s", "db.password": "secret-u"}
    last = history(connect)[-1]
    assert (last["version"], last["note"]) == (3, "rollback to version 1")
    assert last["edits"] == [{"key": "topic", "before": "u", "after": "t"}]
    assert "secret" not in str(history(connect))


def test_a_deleted_connector_can_be_created_again(connect: Connect) -> None:
    connect.http.put("/connectors/s/config", json=SOURCE)
    connect.http.delete("/connectors/s")
    answer = connect.http.post("/connectors/s/rollback", json={"version": 1})
    assert (answer.status_code, answer.json()["config"]) == (201, SOURCE | {"name": "s"})


def test_a_rollback_is_validated(connect: Connect) -> None:
    connect.http.put("/connectors/s/config", json=SOURCE)
    for body, status in (({"version": 9}, 404), ({"version": "x"}, 400), ({}, 400), ({"version": None}, 400)):
        assert connect.http.post("/connectors/s/rollback", json=body).status_code == status, body
    assert connect.http.post("/connectors/none/rollback", json={"version": 1}).status_code == 404


def test_a_connector_without_changes_has_an_empty_history(connect: Connect) -> None:
    connect.make("s", SOURCE, State.RUNNING)  # not by REST
    assert history(connect) == []
    assert connect.http.get("/connectors/none/history").status_code == 404


def test_what_a_client_says_of_itself_is_short_and_printable(connect: Connect) -> None:
    connect.http.put("/connectors/s/config", json=SOURCE, headers={"User-Agent": "a\tb" + "x" * 1000})
    assert history(connect)[0]["client"] == "ab" + "x" * 198


def test_a_login_wins_over_what_the_client_claims(start: Start, tmp_path: Path) -> None:
    users, tokens = tmp_path / "users", tmp_path / "tokens"
    users.write_text("alice=pw\n")
    tokens.write_text("ci=t0ken\n")
    address = start(sluiceway__rest__basic__auth__file=str(users), sluiceway__rest__bearer__token__file=str(tokens)).addresses[0]
    basic = f"Basic {base64.b64encode(b'alice:pw').decode()}"
    for topic, authorization in (("t", basic), ("u", "Bearer t0ken")):
        headers = HEADERS | {"Authorization": authorization}
        assert httpx.put(f"{address}/connectors/s/config", json=SOURCE | {"topic": topic}, headers=headers).status_code < 300
    changes = httpx.get(f"{address}/connectors/s/history", headers={"Authorization": basic}).json()["history"]
    assert [(each["user"], each["authenticated"], each["address"]) for each in changes] == [
        ("alice", True, "127.0.0.1"),
        ("ci", True, "127.0.0.1"),
    ]
