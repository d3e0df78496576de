"""Requests that were put to a real Kafka Connect 4.3.0, put to ours: same status, headers and body.

``exchanges.json`` holds what Connect answered. Each exchange starts from an empty cluster in which the connectors that it
is about are made first. Where Connect's message is the JVM's (``jvm_text``), only the status must be the same; of an option's
description, which is in our own words here, only that there is one.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from fastapi.testclient import TestClient
from sluiceway.config.worker import WorkerConfig
from sluiceway.herder import Herder
from sluiceway.rest.app import make_app
from sluiceway.storage.memory import MemoryConfigStore, MemoryStatusStore
from sluiceway.storage.model import State, Status, TargetState, TaskId

NAMES = {
    "<SOURCE>": "org.apache.kafka.connect.file.FileStreamSourceConnector",
    "<SINK>": "org.apache.kafka.connect.file.FileStreamSinkConnector",
    "<SINK_SIMPLE>": "FileStreamSinkConnector",
    "<SINK_ALIAS>": "FileStreamSink",
    "<SOURCE_SIMPLE>": "FileStreamSourceConnector",
    "<SOURCE_ALIAS>": "FileStreamSource",
    "<JSON_CONVERTER>": "org.apache.kafka.connect.json.JsonConverter",
    "<STRING_CONVERTER>": "org.apache.kafka.connect.storage.StringConverter",
    "<EXTRACT_FIELD>": "org.apache.kafka.connect.transforms.ExtractField$Value",
    "<FILTER>": "org.apache.kafka.connect.transforms.Filter",
    "<HOIST_FIELD>": "org.apache.kafka.connect.transforms.HoistField$Value",
    "<INSERT_FIELD>": "org.apache.kafka.connect.transforms.InsertField$Value",
    "<TOPIC_NAME_MATCHES>": "org.apache.kafka.connect.transforms.predicates.TopicNameMatches",
    "<SINK_TASK>": "org.apache.kafka.connect.file.FileStreamSinkTask",
    "<RUN>": "7",
    "<HOST>": "testserver",
}
TEXT = (Path(__file__).parent / "exchanges.json").read_text(encoding="utf-8")
for mask, real in NAMES.items():
    TEXT = TEXT.replace(mask, real)
EXCHANGES = json.loads(TEXT)

NOTHING_YET = re.compile(
    r"plugin|validate|root|unknown|list-empty|create-(?!duplicate)|put-config-creates|get-after|status-after|.*-deleted$"
)
OUR_WORDS = re.compile(r"(key|value|header)\.converter\.(?!plugin)|(producer|consumer|admin)\.override\.")
"""Keys that are not defined in all as there, as converters and Kafka's clients differ."""
HEADERS = {
    "root-accept-html": {"accept": "text/html"},
    "create-form-content-type": {"content-type": "application/x-www-form-urlencoded"},
}
SOURCE = {"connector.class": NAMES["<SOURCE>"], "tasks.max": "1", "file": "<WORK>/in.txt", "topic": "acc-7-topic"}


class Connect:
    """The app over stores in memory, and a driver's part played by hand."""

    def __init__(self) -> None:
        self.config, self.status = MemoryConfigStore(), MemoryStatusStore()
        self.herder = Herder(WorkerConfig.of({}), self.config, self.status)
        app = make_app(lambda: self.herder, kafka_cluster_id=lambda: "<kafka_cluster_id>")
        self.http = TestClient(app, raise_server_exceptions=False)

    def make(self, name: str, config: dict[str, str], state: State, tasks: list[dict[str, Any]]) -> None:
        at_rest = state in (State.PAUSED, State.STOPPED)
        self.herder.create(name, config, TargetState(state.value) if at_rest else None)
        self.config.put_task_configs(name, [task.get("config", {}) for task in tasks])
        self.status.put_connector(name, Status(state, "<WORKER>", 1, version="4.3.0"))
        for number, task in enumerate(tasks):
            status = Status(State(task.get("state", state.value)), "<WORKER>", 1, trace=task.get("trace"), version="4.3.0")
            self.status.put_task(TaskId(name, number), status)


def prepare(connect: Connect, exchange: dict[str, Any]) -> None:
    """Make the connectors that the recorded cluster had when it was asked, as the answer tells."""
    if NOTHING_YET.match(exchange["id"]):
        return
    body = exchange["body"]
    if isinstance(body, list) and body and isinstance(body[0], str):
        for name in body:
            connect.make(name, SOURCE, State.RUNNING, [{}])
    elif "expand" in exchange["path"]:
        for name, part in body.items():
            part = {"info": {}, "status": {}} | part
            connect.make(name, part["info"].get("config", SOURCE), State.RUNNING, part["status"].get("tasks", []))
    else:
        name = unquote(exchange["path"].split("/")[2]) if "/connectors/" in exchange["path"] else "acc-7-src"
        connect.make(name, *_as_answered(exchange))


def _as_answered(exchange: dict[str, Any]) -> tuple[dict[str, str], State, list[dict[str, Any]]]:
    """Return config, state and tasks of the one connector that an exchange is about."""
    body, about = exchange["body"], exchange["id"]
    state = State.PAUSED if "paused" in about else State.STOPPED if "stopped" in about else State.RUNNING
    config, tasks = dict(SOURCE), [{}]
    if isinstance(body, dict) and exchange["method"] == "GET":
        if exchange["path"].endswith("/config") and exchange["status"] == 200:
            config = body
        config = body.get("config", config)
        tasks = body.get("tasks", [body] if "state" in body else tasks)
    elif isinstance(body, list):
        tasks = body
        config = body[0]["config"] if body else config
    config.pop("task.class", None)
    return config, state, tasks


def masked(document: Any) -> Any:
    """Return an answer with what may differ made alike: versions, who wrote a status, and options' descriptions."""
    if isinstance(document, dict):
        masks = {"version": "<VERSION>", "worker_id": "<WORKER>", "commit": "<commit>", "documentation": "<DOCUMENTATION>"}
        kept = {k: _kafkas(v) if k == "recommended_values" else v for k, v in document.items()}
        if "documentation" in kept and OUR_WORDS.match(kept["name"]):
            kept = {k: kept[k] for k in ("name", "type", "dependents")}
        return {k: masks[k] if k in masks and v else masked(v) for k, v in kept.items()}
    return [masked(each) for each in document] if isinstance(document, list) else document


def _kafkas(offered: list[str]) -> list[str]:
    """Return what is offered of Kafka's own: here there are more converters than on the recorded worker."""
    return [each for each in offered if each.startswith("org.apache.kafka.") or each[0].isdigit()]


def _recorded(found: list[dict[str, str]], expected: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return the plugins found that the recording has too; all but the file connectors were cut to a few in it."""
    return [plugin for plugin in found if plugin in expected or plugin["class"].startswith("org.apache.kafka.connect.file.")]


@pytest.mark.parametrize("exchange", EXCHANGES, ids=lambda exchange: exchange["id"])
def test_the_answer_is_kafka_connects(exchange: dict[str, Any]) -> None:
    connect = Connect()
    prepare(connect, exchange)
    request = exchange["request"]
    content = (
        request["raw"] if isinstance(request, dict) and "raw" in request else json.dumps(request) if request is not None else None
    )
    headers = {"accept": "application/json"} | ({"content-type": "application/json"} if content is not None else {})
    answer = connect.http.request(
        exchange["method"], exchange["path"], content=content, headers=headers | HEADERS.get(exchange["id"], {})
    )
    assert answer.status_code == exchange["status"]
    expected, tags = exchange["body"], exchange.get("tags", ())
    if "location" in exchange["headers"]:
        assert answer.headers["location"] == exchange["headers"]["location"]
    if "options" in tags:
        assert answer.headers["content-type"].startswith("text/plain")
        assert set(answer.text.split(", ")) == set(expected.split(", "))
        assert answer.headers["allow"] == exchange["headers"]["allow"]
    elif expected is None:
        assert answer.content == b"" or answer.status_code == 400
    elif "jvm_text" in tags and not str(dict(expected).get("message") if isinstance(expected, dict) else "").startswith("HTTP "):
        assert answer.headers["content-type"] == "application/json"
        assert answer.json()["error_code"] == exchange["status"]
        assert answer.json()["message"]
    else:
        assert answer.headers["content-type"] == "application/json"
        found = answer.json()
        if exchange["path"].partition("?")[0] == "/connector-plugins" and isinstance(found, list):
            found = _recorded(found, expected)
        assert masked(found) == masked(expected)
