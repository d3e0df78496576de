"""A fuzz of the whole API: no 500 that Kafka Connect would not give, no traceback and no secret in any answer.

Each run puts requests made at random from a seed to a server that keeps its state, as a hostile client would. The number of
requests is 300; ``CASES`` sets another, as in ``tests/support/fuzz.py``.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable
from typing import Any

import pytest

from sluiceway.api import TopicPartition
from support.fuzz import CASES, SEED, of_this_run, ran
from support.rest_replay import Connect

REQUESTS = 500 if CASES else 150  # to each server
SECRET = "hunter2-do-not-tell"
AS_IN_CONNECT = re.compile(
    r"(Offset|Partition) objects |The value for the 'position' key|Offsets may only contain primitive|Failed to (modify|alter) "
    r"|Offsets cannot be modified if the 'file'|Instantiation error|Cannot describe topic .*: Local: Timed out "
)
"""Requests to which Kafka Connect answers 500: a connector or the cluster that refuses offsets, a plugin that is abstract, and
brokers that do not answer: there are none here.
"""
LEAK = re.compile(rf"Traceback|File \"|\.py\b|site-packages|{SECRET}|object at 0x")

NAMES = [
    "a",
    "b",
    "s",
    "k",
    "a b",
    "ü漢",
    "a/b",
    "100%",
    "a\\b",
    ".",
    "..",
    "",
    " ",
    "x" * 300,
    "a;b=c",
    "a?b#c",
    "%00",
    "%zz",
    "%ff",
    "%2e%2e",
    "a{b}",
    "\u202e",
    "null",
    "-1",
]
METHODS = ["GET", "PUT", "POST", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "FOO"]
TEXTS = [
    "",
    " ",
    "1",
    "-1",
    "true",
    "x",
    "ü",
    "\x00",
    "\n",
    "${file:/etc/passwd:a}",
    "${x:y}",
    "${",
    "${file:",
    "[",
    "[1,2)",
    "(",
    "*",
    "a,b,,c",
    "99999999999999999999",
    "1e999",
    "NaN",
    "\ud800",
    "FileStreamSource",
    "FileStreamSink",
    "org.example.Nope",
    "org.apache.kafka.connect.json.JsonConverter",
    "sluiceway.rest.app",
    "os.system",
    "builtins.object",
    "a" * 5000,
]
KEYS = [
    "connector.class",
    "tasks.max",
    "topic",
    "topics",
    "topics.regex",
    "file",
    "name",
    "key.converter",
    "value.converter",
    "header.converter",
    "transforms",
    "transforms.a.type",
    "transforms.a.predicate",
    "predicates",
    "predicates.p.type",
    "errors.tolerance",
    "errors.retry.timeout",
    "errors.deadletterqueue.topic.name",
    "producer.override.acks",
    "consumer.override.group.id",
    "admin.override.x",
    "topic.creation.groups",
    "topic.creation.default.partitions",
    "exactly.once.support",
    "airflow.schedule",
    "airflow.mode",
    "airflow.nope",
    "airflow.dag",
    "batch.size",
    "value.converter.schemas.enable",
    "connector.plugin.version",
    "config.action.reload",
    "offsets.storage.topic",
    "",
    "ü",
    "transforms.a.field",
]


class Fuzzer:
    """Makes requests: mostly almost right ones, since those get far."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)  # noqa: S311 (no secret)

    def request(self) -> tuple[str, str, dict[str, str], bytes | None]:
        method, path, body = self._random.choice(
            [self._connector, self._config, self._offsets, self._plugin, self._logger, self._wild]
        )()
        headers = {"accept": self._rarely(["text/html", "*/*", "garbage,,;", ""], "application/json")}
        content = None if body is None else self._mangled(json.dumps(body).encode("utf-8", "surrogatepass"))
        if content is not None:
            headers["content-type"] = self._rarely(["text/plain", "application/json;charset=x", ""], "application/json")
        return method, path, headers, content

    def _rarely(self, odd: list[Any], usual: Any) -> Any:
        return self._random.choice(odd) if self._random.random() < 0.05 else usual

    def _mangled(self, body: bytes) -> bytes:
        if self._random.random() > 0.08:
            return body
        at = self._random.randrange(len(body) + 1)
        return self._random.choice([body[:at], body[:at] + b"\xff" + body[at:], body + body, b"", b"null", b"[[[" * 50_000])

    def _name(self) -> str:
        name = self._random.choice(NAMES)
        return (
            name
            if name.startswith("%")
            else "".join(c if c.isalnum() else "".join(f"%{b:02X}" for b in c.encode()) for c in name)
        )

    def _value(self, depth: int = 0) -> Any:
        kinds: list[Callable[[], Any]] = [
            lambda: self._random.choice(TEXTS),
            lambda: self._random.choice(TEXTS),
            lambda: self._random.randint(-5, 2**66),
            lambda: self._random.choice([None, True, False, 1.5, -0.0, 1e300]),
        ]
        if depth < 2 and self._random.random() < 0.15:
            kinds = [lambda: [self._value(depth + 1)], lambda: {self._random.choice(KEYS): self._value(depth + 1)}]
        return self._random.choice(kinds)()

    def _some_config(self) -> dict[str, Any]:
        base = self._random.choice(
            [
                {"connector.class": "FileStreamSource", "topic": "t", "file": "/f"},
                {"connector.class": "FileStreamSink", "topics": "t", "file": "/f"},
                {},
            ]
        )
        odd = {self._random.choice(KEYS): self._value() for _ in range(self._random.randrange(4))}
        return base | {"database.password": SECRET, "producer.override.sasl.jaas.config": SECRET} | odd

    def _connector(self) -> tuple[str, str, Any]:
        task = self._random.choice(TEXTS[:6])
        rest = [
            "",
            "/status",
            "/tasks",
            "/tasks/0/status",
            f"/tasks/{task}/status",
            "/pause",
            "/resume",
            "/stop",
            "/fence",
            "/restart?includeTasks=true",
            "/restart?onlyFailed=x",
            "/topics",
            "/topics/reset",
            "/dead-letters",
            "/dead-letters?limit=x",
            "/dead-letters/replay",
            "/signals",
            "/config",
            "/offsets",
            "/tasks/0/restart",
        ]
        return (
            self._random.choice(METHODS[:5]),
            f"/connectors/{self._name()}{self._random.choice(rest)}",
            self._rarely([{}], None),
        )

    def _config(self) -> tuple[str, str, Any]:
        if self._random.random() < 0.5:
            request: dict[str, Any] = {"name": self._random.choice([*NAMES, None, 5, []]), "config": self._some_config()}
            return "POST", "/connectors", request | self._rarely([{"initial_state": self._value()}, {"x": 1}], {})
        return self._random.choice(["PUT", "PATCH"]), f"/connectors/{self._name()}/config", self._some_config()

    def _offsets(self) -> tuple[str, str, Any]:
        partitions = [
            {"filename": "/f"},
            {"kafka_topic": "t", "kafka_partition": 0},
            {},
            None,
            {"kafka_topic": self._value(), "kafka_partition": self._value()},
        ]
        offsets = [{"position": self._value()}, {"kafka_offset": self._value()}, None, {}, self._value()]
        edits = [
            {"partition": self._random.choice(partitions), "offset": self._random.choice(offsets)}
            for _ in range(self._random.randrange(3))
        ]
        return "PATCH", f"/connectors/{self._random.choice('sk')}/offsets", {"offsets": self._rarely([None, {}, "x", [1]], edits)}

    def _plugin(self) -> tuple[str, str, Any]:
        plugin = self._random.choice(
            ["FileStreamSource", "FileStreamSink", "JsonConverter", "none", "org.apache.kafka.connect.storage.Converter", "..."]
        )
        if self._random.random() < 0.7:
            return "PUT", f"/connector-plugins/{plugin}/config/validate", self._some_config()
        query = self._random.choice(["", "?version=1", "?version=[", "?connectorsOnly=false"])
        return "GET", self._random.choice([f"/connector-plugins/{plugin}/config", "/connector-plugins"]) + query, None

    def _logger(self) -> tuple[str, str, Any]:
        path = f"/admin/loggers/{self._random.choice(['fuzz.a', 'fuzz.a.b', 'nobody', self._name()])}"
        level: dict[str, Any] = {"level": self._random.choice(["INFO", "debug", "LOUD", None, 5, "", []])}
        return self._random.choice(
            [("GET", path, None), ("PUT", path, level), ("PUT", f"{path}?scope=cluster", level), ("GET", "/admin/loggers", None)]
        )

    def _wild(self) -> tuple[str, str, Any]:
        words = ["connectors", "connector-plugins", "admin", "loggers", "status", "docs", "openapi.json"]
        parts = [self._random.choice([*words, self._name()]) for _ in range(self._random.randrange(4))]
        query = self._random.choice(["", "?expand=info&expand=status", "?expand", "?%ff=%zz", "?forward=x"])
        return self._random.choice(METHODS), "/" + "/".join(parts) + query, self._rarely([{}, [], None, "x"], None)


@pytest.mark.parametrize("server", of_this_run(size=REQUESTS) if CASES else (1, 2))
def test_no_request_gets_more_out_of_the_api_than_an_answer_in_connects_form(server: int) -> None:
    connect, fuzzer, began = Connect(places=[TopicPartition("t", 0)]), Fuzzer(f"{SEED} {server}"), time.process_time()
    codes: dict[int, int] = {}
    with connect.http:  # one thread for all requests
        for _ in range(REQUESTS):
            for name, config in (
                ("s", {"connector.class": "FileStreamSource", "topic": "t", "file": "/f"}),
                ("k", {"connector.class": "FileStreamSink", "topics": "t"}),
            ):
                if connect.config.snapshot().entry(name) is None:
                    connect.http.post("/connectors", json={"name": name, "config": config, "initial_state": "STOPPED"})
            method, path, headers, content = fuzzer.request()
            answer = connect.http.request(method, f"http://testserver{path}", headers=headers, content=content)
            told = f"{method} {path} {content!r:.500} -> {answer.status_code} {answer.text:.500}"
            codes[answer.status_code] = codes.get(answer.status_code, 0) + 1
            _check(answer, told, method)
    assert {200, 400, 404} <= codes.keys(), codes
    if CASES:
        ran("test_no_request_gets_more_out_of_the_api_than_an_answer_in_connects_form", REQUESTS, time.process_time() - began)


def _check(answer: Any, told: str, method: str) -> None:
    is_read = answer.request.method == "GET" and answer.request.url.path.startswith("/connectors") and answer.status_code == 200
    text = answer.text if not is_read and answer.request.url.path != "/openapi.json" else answer.text.replace(SECRET, "")
    # A config is told to whoever may read it and to whoever sent it, as in Connect; nothing else repeats a secret.
    if (
        answer.status_code in (200, 201)
        and method in ("POST", "PUT", "PATCH")
        and answer.request.url.path.startswith("/connectors")
    ):
        text = text.replace(SECRET, "")
    assert not LEAK.search(text), told
    if answer.status_code >= 400 and method != "HEAD":
        assert answer.headers["content-type"] == "application/json", told
        assert answer.json().keys() == {"error_code", "message"}, told
        assert answer.json()["error_code"] == answer.status_code, told
    if answer.status_code >= 500:
        assert AS_IN_CONNECT.match(answer.json()["message"]), told
