"""The endpoints of connectors: offsets, config changes, restarts, topics."""

from __future__ import annotations

import time
from typing import Any

import pytest

from sluiceway.api import TopicPartition
from sluiceway.storage.model import RestartRequest, State, Status
from support.rest_replay import WORKER_ID, Connect
from unit.rest.servers import PARTITION

SOURCE = {"connector.class": "FileStreamSource", "file": "/f", "topic": "t"}


SINK = {"connector.class": "FileStreamSink", "file": "/f", "topics": "t"}


FILE = {"filename": "/f"}


NO_PARTITION = (
    "Failed to parse the following Kafka partition value in the provided offsets: '{}'. "
    "Partition values for sink connectors need to be integers."
)


NO_OFFSET = (
    "Failed to parse the following Kafka offset value in the provided offsets: '{}'. "
    "Offset values for sink connectors need to be integers."
)


ON_T = {"kafka_topic": "t", "kafka_partition": 0}


def patch(connect: Connect, name: str, *edits: Any) -> tuple[int, str]:
    answer = connect.http.patch(f"/connectors/{name}/offsets", json={"offsets": edits})
    return answer.status_code, answer.json()["message"]


def offsets(connect: Connect, name: str) -> list[Any]:
    return list(connect.http.get(f"/connectors/{name}/offsets").json()["offsets"])


def test_a_sources_offsets_are_set_shown_and_forgotten(connect: Connect) -> None:
    connect.make("s", SOURCE, State.STOPPED)
    altered = (200, "The offsets for this connector have been altered successfully")
    assert patch(connect, "s", {"partition": FILE, "offset": {"position": 3}}) == altered
    assert offsets(connect, "s") == [{"partition": FILE, "offset": {"position": 3}}]
    assert patch(connect, "s", {"partition": FILE, "offset": None}) == altered
    assert offsets(connect, "s") == []
    patch(connect, "s", {"partition": FILE, "offset": {"position": 3}})
    reset = connect.http.delete("/connectors/s/offsets")
    assert (reset.status_code, reset.json()) == (200, {"message": "The offsets for this connector have been reset successfully"})
    assert offsets(connect, "s") == []


def test_a_position_that_is_elsewhere_is_told_and_cannot_be_set(connect: Connect) -> None:
    connect.make("q", {"connector.class": "RedisGroupSource", "redis.stream.name": "orders"}, State.STOPPED)
    told = connect.http.get("/connectors/q/offsets").json()
    assert told["offsets"] == []
    assert "consumer group kafka-consumer-group" in told["position"]
    status, message = patch(connect, "q", {"partition": {"stream": "orders"}, "offset": {"id": "1-0"}})
    assert (status, message) == (400, f"The connector has no offsets to set. {told['position']}")
    sought = connect.http.get("/connectors/q/offsets/find?to=latest")
    assert (sought.status_code, sought.json()["message"]) == (400, f"The connector has no offsets to find. {told['position']}")
    reset = connect.http.delete("/connectors/q/offsets")
    assert (reset.status_code, reset.json()["message"]) == (400, f"There are no offsets to reset. {told['position']}")
    connect.offsets.put("q", [({"stream": "orders"}, {"id": "1-0"})])  # of another class with the same name before
    assert connect.http.delete("/connectors/q/offsets").status_code == 200
    assert offsets(connect, "q") == []
    connect.make("s", SOURCE, State.STOPPED)
    assert connect.http.get("/connectors/s/offsets").json() == {"offsets": []}, "as Kafka Connect answers"


@pytest.mark.parametrize("state", [State.RUNNING, State.PAUSED])
@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
def test_offsets_of_a_connector_that_is_not_stopped_stay_as_they_are(connect: Connect, state: State, method: str) -> None:
    connect.make("s", SOURCE, state, [{}])
    connect.offsets.put("s", [(FILE, {"position": 1})])
    body = {"offsets": [{"partition": FILE, "offset": {"position": 9}}]} if method == "PATCH" else None
    answer = connect.http.request(method, "/connectors/s/offsets", json=body)
    assert answer.status_code == 400
    assert "must be in the STOPPED state" in answer.json()["message"]
    assert "'/connectors/s/stop'" in answer.json()["message"]
    assert offsets(connect, "s") == [{"partition": FILE, "offset": {"position": 1}}]


def test_offsets_are_refused_while_a_driver_is_still_stopping(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    from sluiceway.herder import offsets as module
    from sluiceway.storage.model import Status

    monkeypatch.setattr(module, "_STOPPING_SECONDS", 0.1)
    connect.make("s", SOURCE, State.STOPPED)
    connect.status.put_connector("s", Status(State.RUNNING, "driver:1", 1))
    status, message = patch(connect, "s", {"partition": FILE, "offset": {"position": 3}})
    assert status == 500
    assert "has not stopped completely yet" in message
    assert offsets(connect, "s") == []


@pytest.mark.parametrize("body", [{}, {"offsets": []}, {"offsets": None}])
@pytest.mark.parametrize("name", ["s", "none"])
def test_no_offsets_at_all_are_refused(connect: Connect, body: Any, name: str) -> None:
    connect.make("s", SOURCE, State.STOPPED)
    answer = connect.http.patch(f"/connectors/{name}/offsets", json=body)
    assert answer.status_code == 400
    assert answer.json()["message"] == "Partitions / offsets need to be provided for an alter offsets request"


@pytest.mark.parametrize(
    ("offset", "message"),
    [
        ({"position": "x"}, "The value for the 'position' key in the offset is expected to be a Long value"),
        ({"position": None}, "The value for the 'position' key in the offset is expected to be a Long value"),
        ({"position": True}, "The value for the 'position' key in the offset is expected to be a Long value"),
        ({"position": 1.5}, "The value for the 'position' key in the offset is expected to be a Long value"),
        ({}, "Offset objects should either be null or contain the key 'position'"),
        ({"position": [1]}, "Offsets may only contain primitive types as values, but field position contains ARRAY"),
        ({"position": {}}, "Offsets may only contain primitive types as values, but field position contains MAP"),
        (
            {"position": 2**70},
            "Offsets may only contain primitive types as values, but field position contains class java.math.BigInteger",
        ),
    ],
)
def test_the_connector_refuses_offsets_that_it_could_not_start_from(connect: Connect, offset: Any, message: str) -> None:
    connect.make("s", SOURCE, State.STOPPED)
    assert patch(connect, "s", {"partition": FILE, "offset": offset}) == (500, message)
    assert offsets(connect, "s") == []


def test_an_edit_of_nothing_changes_nothing(connect: Connect) -> None:
    connect.make("s", SOURCE, State.STOPPED)
    assert patch(connect, "s", {})[0] == 200
    assert offsets(connect, "s") == []


def test_a_sinks_offsets_are_those_of_its_group(connect: Connect) -> None:
    connect.make("k", SINK | {"consumer.override.group.id": "g", "admin.override.client.id": "me"}, State.STOPPED)
    other = {"kafka_topic": "t", "kafka_partition": "1"}
    first = {"partition": ON_T, "offset": {"kafka_offset": 7}}
    assert patch(connect, "k", first, {"partition": other, "offset": {"kafka_offset": "8"}})[0] == 200
    assert connect.groups.committed["g"] == {PARTITION: 7, TopicPartition("t", 1): 8}
    assert connect.groups.opened_with == {"client.id": "me"}
    assert patch(connect, "k", {"partition": other, "offset": None})[0] == 200
    assert offsets(connect, "k") == [first]
    assert connect.http.delete("/connectors/k/offsets").status_code == 200
    assert offsets(connect, "k") == []


@pytest.mark.parametrize(
    ("edit", "status", "message"),
    [
        ({"partition": None, "offset": None}, 400, "The partition for a sink connector offset cannot be null or missing"),
        (
            {"partition": {"kafka_topic": "t"}},
            400,
            "The partition for a sink connector offset must contain the keys 'kafka_topic' and 'kafka_partition'",
        ),
        ({"partition": ON_T | {"kafka_topic": None}}, 400, "Kafka topic names must be valid strings and may not be null"),
        ({"partition": ON_T | {"kafka_partition": None}}, 400, "Kafka partitions must be valid numbers and may not be null"),
        ({"partition": ON_T | {"kafka_partition": "z"}}, 400, NO_PARTITION.format("z")),
        ({"partition": ON_T, "offset": {"kafka_offset": 1.5}}, 400, NO_OFFSET.format("1.5")),
        ({"partition": ON_T, "offset": {"kafka_offset": None}}, 400, NO_OFFSET.format("null")),
        (
            {"partition": ON_T, "offset": {}},
            400,
            "The offset for a sink connector should either be null or contain the key 'kafka_offset'",
        ),
        ({"partition": ON_T, "offset": {"kafka_offset": -1}}, 500, "Failed to modify offsets for sink connector k"),
        (
            {"partition": ON_T | {"kafka_topic": "nosuch"}, "offset": {"kafka_offset": 1}},
            500,
            "Failed to alter consumer group offsets for connector k",
        ),
        (
            {"partition": ON_T | {"kafka_partition": -1}, "offset": {"kafka_offset": 1}},
            500,
            "Failed to alter consumer group offsets for connector k",
        ),
    ],
)
def test_what_is_no_partition_or_offset_of_a_sink_is_refused_and_nothing_set(
    connect: Connect, edit: Any, status: int, message: str
) -> None:
    connect.make("k", SINK, State.STOPPED)
    good = {"partition": ON_T | {"kafka_partition": 1}, "offset": {"kafka_offset": 1}}
    assert patch(connect, "k", good, edit) == (status, message)
    assert offsets(connect, "k") == []


def test_a_group_with_members_left_is_not_touched(connect: Connect) -> None:
    connect.make("k", SINK, State.STOPPED)
    connect.groups.committed["connect-k"] = {PARTITION: 5}
    connect.groups.busy.add("connect-k")
    status, message = patch(connect, "k", {"partition": ON_T, "offset": {"kafka_offset": 1}})
    assert status == 500
    assert message.startswith("Failed to alter consumer group offsets for connector k either because its tasks haven't stopped")
    answer = connect.http.delete("/connectors/k/offsets")
    assert answer.status_code == 500
    assert answer.json()["message"].startswith("Failed to reset consumer group offsets for connector k either because")
    assert answer.json()["message"].endswith("may need to be restarted to get rid of the zombie sink tasks.")
    assert connect.groups.committed["connect-k"] == {PARTITION: 5}


@pytest.mark.parametrize("method", ["GET", "DELETE", "PATCH"])
def test_an_unknown_connector_has_no_offsets(connect: Connect, method: str) -> None:
    body = {"offsets": [{"partition": FILE}]} if method == "PATCH" else None
    answer = connect.http.request(method, "/connectors/none/offsets", json=body)
    assert (answer.status_code, answer.json()["message"]) == (404, "Connector none not found")


def test_a_patch_changes_adds_and_removes_keys_and_leaves_the_others(connect: Connect) -> None:
    connect.make("s", SOURCE | {"batch.size": "5"}, State.RUNNING, [{}])
    answer = connect.http.patch("/connectors/s/config", json={"batch.size": None, "file": "/g", "x": 3, "y": True})
    assert answer.status_code == 200
    assert answer.json()["config"] == SOURCE | {"name": "s", "file": "/g", "x": "3", "y": "true"}
    assert answer.json()["tasks"] == [{"connector": "s", "task": 0}]
    assert connect.http.get("/connectors/s/config").json() == answer.json()["config"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"topic": None}, 'Missing required configuration "topic" which has no default value.'),
        ({"name": "other"}, "Connector name configuration (other) doesn't match connector name in the URL (s)"),
        ({"a": {"b": 1}}, "The value of 'a' in the config must be a string, a number or a boolean."),
    ],
)
def test_a_patch_that_makes_the_config_invalid_changes_nothing(connect: Connect, change: Any, message: str) -> None:
    connect.make("s", SOURCE, State.RUNNING)
    answer = connect.http.patch("/connectors/s/config", json=change)
    assert answer.status_code == 400
    assert message in answer.json()["message"]
    assert connect.http.get("/connectors/s/config").json() == SOURCE | {"name": "s"}


def test_an_unknown_connector_cannot_be_patched(connect: Connect) -> None:
    answer = connect.http.patch("/connectors/none/config", json={})
    assert (answer.status_code, answer.json()["message"]) == (404, "Connector none not found")


def test_a_patch_keeps_what_others_changed_while_it_was_being_checked(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    from sluiceway.herder import validation

    connect.make("s", SOURCE, State.RUNNING)
    checked = validation.checked
    interfered: list[bool] = []

    def check_slowly(config: Any, worker: Any, **more: Any) -> Any:
        stored = checked(config, worker, **more)
        if not interfered:
            interfered.append(True)
            connect.config.put_connector("s", SOURCE | {"name": "s", "other": "1"})
        return stored

    monkeypatch.setattr(validation, "checked", check_slowly)
    assert connect.http.patch("/connectors/s/config", json={"mine": "2"}).json()["config"] == SOURCE | {
        "name": "s",
        "other": "1",
        "mine": "2",
    }


def test_a_patch_gives_up_where_others_never_stop_changing_the_config(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    from sluiceway.herder import validation

    connect.make("s", SOURCE, State.RUNNING)
    changes = iter(range(1000))

    def check_slowly(*_: Any, **_more: Any) -> Any:
        connect.config.put_connector("s", SOURCE | {"name": "s", "n": str(next(changes))})
        return SOURCE, frozenset()

    monkeypatch.setattr(validation, "checked", check_slowly)
    answer = connect.http.patch("/connectors/s/config", json={"mine": "2"})
    assert answer.status_code == 409
    assert "mine" not in connect.http.get("/connectors/s/config").json()


def test_a_restart_reaches_whoever_runs_the_connector(connect: Connect) -> None:
    connect.make("s", SOURCE, State.RUNNING, [{}])
    posts = {
        "": (204, RestartRequest("s")),
        "?includeTasks=true": (202, RestartRequest("s", include_tasks=True)),
        "?onlyFailed=TRUE": (202, RestartRequest("s", only_failed=True)),
        "?includeTasks=maybe&onlyFailed": (204, RestartRequest("s")),
    }
    for query, (status, request) in posts.items():
        assert connect.http.post(f"/connectors/s/restart{query}").status_code == status
        assert connect.config.take_restart_requests() == [request]


def test_a_restart_tells_what_it_will_restart(connect: Connect) -> None:
    failed = {"state": "FAILED", "trace": "boom"}
    connect.make("s", SOURCE, State.RUNNING, [{}, failed])

    def states(query: str) -> list[str]:
        told = connect.http.post(f"/connectors/s/restart?{query}").json()
        return [told["connector"]["state"], *(task["state"] for task in told["tasks"])]

    assert states("includeTasks=true") == ["RESTARTING", "RESTARTING", "RESTARTING"]
    assert states("includeTasks=true&onlyFailed=true") == ["RUNNING", "RUNNING", "RESTARTING"]
    assert states("onlyFailed=true") == ["RUNNING", "RUNNING", "FAILED"]


def test_an_unknown_connector_cannot_be_restarted(connect: Connect) -> None:
    for query in ("", "?includeTasks=true"):
        answer = connect.http.post(f"/connectors/none/restart{query}")
        assert (answer.status_code, answer.json()["message"]) == (404, "Unknown connector: none")
    assert connect.config.take_restart_requests() == []


def test_topics_are_told_and_forgotten(connect: Connect) -> None:
    connect.make("s", SOURCE, State.RUNNING, [{}])
    for topic in ("u", "t"):
        connect.status.put_topic("s", 0, topic)
    assert connect.http.get("/connectors/s/topics").json() == {"s": {"topics": ["t", "u"]}}
    assert connect.http.put("/connectors/s/topics/reset").status_code == 202
    assert connect.http.get("/connectors/s/topics").json() == {"s": {"topics": []}}
    assert connect.http.get("/connectors/none/topics").json() == {"none": {"topics": []}}


@pytest.mark.parametrize(("method", "path"), [("PUT", "/connectors/s/fence"), ("POST", "/connectors/s/tasks")])
def test_requests_between_connects_workers_are_refused(connect: Connect, method: str, path: str) -> None:
    answer = connect.http.request(method, path)
    assert (answer.status_code, answer.json()["message"]) == (400, "Internal request missing required signature")


def test_a_connector_at_rest_has_a_driver_if_one_has_written_its_status_lately(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect.make("s", SOURCE, State.STOPPED)

    def driver(worker_id: str, seconds: float) -> object:
        status = Status(State.STOPPED, worker_id, 1, timestamp=int((time.time() - seconds) * 1000))
        monkeypatch.setattr(connect.status, "connector", lambda _name: status)
        return connect.http.get("/connectors/s/application").json()["driver"]

    assert driver("host:7", 1) == "host:7"
    assert driver("host:7", 3600) is None
    assert driver(connect.worker.advertised_address, 1) is None, "the REST API's own status"
    monkeypatch.setattr(connect.status, "driver", lambda _name, since: "host:8" if since < 1000 * (time.time() - 9) else None)
    assert driver(connect.worker.advertised_address, 1) == "host:8", "whose status the REST API has written over"


def test_a_connectors_application_is_told_with_the_reason() -> None:
    connect = Connect({"sluiceway.application.default": "small", "sluiceway.application.max.tasks": "1"})
    path = "/connectors/s/application"
    connect.make("s", SOURCE, State.RUNNING)
    default = {"application": "small", "reason": "the worker has sluiceway.application.default=small", "driver": WORKER_ID}
    assert connect.http.get(path).json() == default
    connect.config.put_placed(lambda _state: {"s": "small-2"})
    assert connect.http.get(path).json()["application"] == "small-2"
    assert "sluiceway.application.max.tasks" in connect.http.get(path).json()["reason"]
    connect.http.put("/connectors/s/config", json={**SOURCE, "spark.driver.memory": "2g"})
    assert connect.http.get(path).json() == {
        "application": None,
        "reason": "its config has spark.driver.memory",
        "driver": WORKER_ID,
    }
    assert connect.http.get("/connectors/none/application").status_code == 404
