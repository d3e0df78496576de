"""POST restart, of a connector and of a task: what Kafka Connect 4.3 answered to the same requests."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient

from sluiceway.config.worker import WorkerConfig
from sluiceway.herder import Herder
from sluiceway.rest.app import make_app
from sluiceway.storage.memory import MemoryConfigBackingStore, MemoryStatusBackingStore
from sluiceway.storage.model import RestartRequest, State, Status, TargetState, TaskId


class Cluster:
    """A source with two tasks, the second one FAILED; a driver's part is played by hand."""

    def __init__(self) -> None:
        self.config, status = MemoryConfigBackingStore(), MemoryStatusBackingStore()
        self.herder = Herder(WorkerConfig.of({}), self.config, status)
        self.http = TestClient(make_app(lambda: self.herder), raise_server_exceptions=False)
        self.herder.create("src", {"connector.class": "FileStreamSource", "file": "/f", "topic": "t"})
        self.config.put_task_configs("src", [{"n": "0"}, {"n": "1"}])
        status.put_connector("src", Status(State.RUNNING, "w", 1, version="1"))
        status.put_task(TaskId("src", 0), Status(State.RUNNING, "w", 1, version="1"))
        status.put_task(TaskId("src", 1), Status(State.FAILED, "w", 1, trace="why", version="1"))

    def post(self, path: str, **more: Any) -> tuple[int, Any]:
        answer = self.http.post(f"/connectors/{path}", headers={"accept": "application/json"}, **more)
        return answer.status_code, answer.json() if answer.content else None

    def requests(self) -> list[RestartRequest]:
        return self.config.take_restart_requests()


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.mark.parametrize("query", ["", "?includeTasks=false&onlyFailed=no", "?includeTasks=1&onlyFailed=yes", "?forward=false"])
def test_a_plain_restart_has_no_body_and_is_for_the_connector_alone(cluster: Cluster, query: str) -> None:
    assert cluster.post(f"src/restart{query}") == (204, None)
    assert cluster.requests() == [RestartRequest("src")]


def test_a_restart_with_a_choice_answers_with_the_states_to_come(cluster: Cluster) -> None:
    code, body = cluster.post("src/restart?includeTasks=true&onlyFailed=true")
    assert code == 202
    assert body == {
        "name": "src",
        "connector": {"state": "RUNNING", "worker_id": "w", "version": "1"},
        "tasks": [
            {"id": 0, "state": "RUNNING", "worker_id": "w", "version": "1"},
            {"id": 1, "state": "RESTARTING", "worker_id": "w", "version": "1", "trace": "why"},
        ],
        "type": "source",
    }
    assert cluster.requests() == [RestartRequest("src", only_failed=True, include_tasks=True)]
    code, body = cluster.post("src/restart?includeTasks=TRUE")
    assert (code, body["connector"]["state"], [task["state"] for task in body["tasks"]]) == (
        202,
        "RESTARTING",
        ["RESTARTING"] * 2,
    )
    assert cluster.post("src/restart?onlyFailed=true")[1]["connector"]["state"] == "RUNNING"


def test_a_stopped_connector_is_shown_as_restarting_without_tasks(cluster: Cluster) -> None:
    cluster.herder.create("still", {"connector.class": "FileStreamSource", "file": "/f", "topic": "t"}, TargetState.STOPPED)
    code, body = cluster.post("still/restart?includeTasks=true")
    assert (code, body["connector"]["state"], body["tasks"]) == (202, "RESTARTING", [])


def test_a_task_is_restarted_by_itself(cluster: Cluster) -> None:
    assert cluster.post("src/tasks/1/restart") == (204, None)
    assert cluster.requests() == [RestartRequest("src", task=1)]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("none/restart", "Unknown connector: none"),
        ("none/restart?includeTasks=true", "Unknown connector: none"),
        ("none/tasks/0/restart", "Unknown connector: none"),
        ("src/tasks/2/restart", "Unknown task: src-2"),
        ("src/tasks/-1/restart", "Unknown task: src--1"),
        ("src/tasks/abc/restart", "HTTP 404 Not Found"),
    ],
)
def test_what_is_not_there_is_not_found_and_nothing_is_asked_for(cluster: Cluster, path: str, message: str) -> None:
    assert cluster.post(path) == (404, {"error_code": 404, "message": message})
    assert cluster.requests() == []


def test_a_body_is_not_looked_at(cluster: Cluster) -> None:
    assert cluster.post("src/restart", json={"a": 1}) == (204, None)
