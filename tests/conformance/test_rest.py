"""Requests recorded from a real Kafka Connect 4.3.0: our REST API returns the same status, headers and body.

``rest_exchanges.json`` has Connect's responses. Each exchange starts with an empty cluster in which its connectors are created
first. Where Connect's response contains a JVM message (``jvm_text``), the status must be the same, or 400 for its 500, and the
body must be an error in Connect's format. An option's description only has to exist, because ours are not Kafka's.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from sluiceway.api import TopicPartition
from sluiceway.herder.loggers import Loggers
from sluiceway.storage.model import State
from support.rest_replay import Connect, connector_in

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
TEXT = (Path(__file__).parent / "data" / "rest_exchanges.json").read_text(encoding="utf-8")
for mask, real in NAMES.items():
    TEXT = TEXT.replace(mask, real)
EXCHANGES = [exchange for exchange in json.loads(TEXT) if exchange["method"] != "FILE"]  # a sink's output, not a response

NOTHING_YET = re.compile(
    r"plugin|validate|root|health|unknown|list-empty|create-(?!duplicate)|put-config-creates|get-after|status-after|.*-deleted$"
    r"|name-slash-(get|delete)|name-percent|logger"
)
STOPPED = re.compile(r"offsets-(?!.*(running|paused))|source-offsets-reset|sink-offsets-(stopped|null)|initial-stopped")
OUR_WORDS = re.compile(r"(key|value|header)\.converter\.(?!plugin)|(producer|consumer|admin)\.override\.")
"""Keys that are not defined in all as there, as converters and Kafka's clients differ."""
HEADERS = {
    "root-accept-html": {"accept": "text/html"},
    "create-form-content-type": {"content-type": "application/x-www-form-urlencoded"},
}
SOURCE = {"connector.class": NAMES["<SOURCE>"], "tasks.max": "1", "file": "<WORK>/in.txt", "topic": "acc-7-topic"}
SINK = {"connector.class": NAMES["<SINK>"], "tasks.max": "2", "file": "<WORK>/out.txt", "topics": "acc-7-topic"}
PLACE = TopicPartition("acc-7-topic", 0)
GROUP = "connect-acc-7-snk"
FAILED = {
    "state": "FAILED",
    "trace": "org.apache.kafka.connect.errors.ConnectException: Tolerance exceeded in error handler <TRACE>",
}
COMMITTED = {"sink-offsets-running": 12, "sink-offsets-stopped": 12}


def prepare(connect: Connect, exchange: dict[str, Any]) -> None:
    """Create the connectors of the recorded cluster, derived from the response."""
    about = exchange["id"]
    if about in COMMITTED:
        connect.groups.committed[GROUP] = {PLACE: COMMITTED[about]}
    prepare_loggers(connect.loggers, about)
    if NOTHING_YET.match(about):
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
        name = connector_in(exchange["path"]) if "/connectors/" in exchange["path"] else "acc-7-src"
        connect.make(name, *as_answered(exchange, name))
        if about == "sink-topics":
            connect.status.put_topic(name, 0, "acc-7-topic")


def prepare_loggers(loggers: Loggers, about: str) -> None:
    if about == "logger-get":
        loggers.set("org.example.acc7", "ERROR")
        loggers.set("org.example.acc7", "WARN")
    elif about == "logger-get-after-cluster":
        loggers.set("org.example.acc7", "FATAL")
    elif about == "logger-put-scope-worker":
        loggers.set("org.example.acc7.child", "DEBUG")


def as_answered(exchange: dict[str, Any], name: str) -> tuple[dict[str, str], State, list[dict[str, Any]]]:
    """Return config, state and tasks of the one connector that an exchange is about."""
    body, about = exchange["body"], exchange["id"]
    if STOPPED.match(about):
        return (SINK if name.endswith("-snk") else SOURCE), State.STOPPED, []
    state = State.PAUSED if "paused" in about else State.STOPPED if "stopped" in about else State.RUNNING
    config = dict(SINK if name.endswith("-snk") else SOURCE)
    tasks: list[dict[str, str]] = [{}, {}] if name.endswith("-snk") else [{}]
    if about.startswith("patch-config"):
        config |= {"topic.creation.default.partitions": "1", "topic.creation.default.replication.factor": "1"}
    elif "restart" in about and exchange["method"] == "POST":
        tasks = [FAILED] if about.startswith("failing") else [{} for _ in (body or {}).get("tasks", tasks)]
    elif isinstance(body, dict) and exchange["method"] == "GET":
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
    """Mask the parts of a response that may differ: versions, times, worker ids and options' descriptions."""
    if isinstance(document, dict):
        masks = {"version": "<VERSION>", "worker_id": "<WORKER>", "commit": "<commit>", "last_modified": "<TIME>"}
        masks["documentation"] = "<DOCUMENTATION>"
        kept = {k: _kafkas(v) if k == "recommended_values" else v for k, v in document.items()}
        if "documentation" in kept and OUR_WORDS.match(str(kept["name"])):
            kept = {k: kept[k] for k in ("name", "type", "dependents")}
        return {k: masks[k] if k in masks and v else masked(v) for k, v in kept.items()}
    return [masked(each) for each in document] if isinstance(document, list) else document


def _kafkas(offered: list[str]) -> list[str]:
    """Return the recommended values that are Kafka's: we offer more converters than the recorded worker."""
    return [each for each in offered if each.startswith("org.apache.kafka.") or each[0].isdigit()]


def as_recorded(found: Any, exchange: dict[str, Any]) -> Any:
    """Return a response without plugins that the recorded worker lacked, and without parts cut from the recording."""
    if exchange["path"].startswith("/connector-plugins") and isinstance(found, list) and found and "class" in found[0]:
        return [
            plugin
            for plugin in found
            if plugin in exchange["body"] or plugin["class"].startswith("org.apache.kafka.connect.file")
        ]
    if exchange["id"] == "loggers":
        return found | {"root": found["root"] | {"level": "INFO"}}
    return found


def put(connect: Connect, exchange: dict[str, Any]) -> Any:
    request = exchange["request"]
    content = (
        request["raw"] if isinstance(request, dict) and "raw" in request else json.dumps(request) if request is not None else None
    )
    headers = {"accept": "application/json"} | ({"content-type": "application/json"} if content is not None else {})
    if exchange["id"] == "root-no-accept":
        headers.pop("accept")
    if exchange["method"] == "OPTIONS":
        headers["accept"] = "text/plain"
    return connect.http.request(
        exchange["method"], exchange["path"], content=content, headers=headers | HEADERS.get(exchange["id"], {})
    )


@pytest.mark.parametrize("exchange", EXCHANGES, ids=lambda exchange: exchange["id"])
def test_the_answer_is_kafka_connects(exchange: dict[str, Any]) -> None:
    connect = Connect(places=[PLACE])
    prepare(connect, exchange)
    answer = put(connect, exchange)
    expected, tags = exchange["body"], exchange.get("tags", ())
    if "jvm_text" in tags:
        assert answer.status_code == {500: 400}.get(exchange["status"], exchange["status"])
        assert answer.json()["error_code"] == answer.status_code
        told, recorded = answer.json()["message"], exchange["body"]
        by_jersey = isinstance(recorded, dict) and str(recorded.get("message")).startswith("HTTP ")
        assert told == recorded["message"] if by_jersey else told
        return
    assert answer.status_code == exchange["status"]
    if "location" in exchange["headers"]:
        assert answer.headers["location"] == exchange["headers"]["location"]
    if "options" in tags:
        assert answer.headers["content-type"].startswith("text/plain")
        assert set(answer.text.split(", ")) == set(expected.split(", "))
        assert set(answer.headers["allow"].split(",")) == set(exchange["headers"]["allow"].split(","))
    elif expected is None:
        assert answer.content == b"" or answer.status_code == 400
    else:
        assert answer.headers["content-type"] == "application/json"
        assert masked(as_recorded(answer.json(), exchange)) == masked(expected)
