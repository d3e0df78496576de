"""Requests to a real Kafka Connect and to Sluiceway that are not recorded: status, headers and body are the same."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.herder import Herder
from sluiceway.rest.server import RestServer
from sluiceway.storage.factory import open_stores
from support.peer import FILE_SINK, FILE_SOURCE, PeerDistributed

pytestmark = pytest.mark.kafka

SOURCE = {"connector.class": FILE_SOURCE, "file": "/tmp/none", "topic": "t"}  # noqa: S108 (never read)
SINK = {"connector.class": FILE_SINK, "topics": "t"}
VALIDATE = f"/connector-plugins/{FILE_SOURCE}/config/validate"
NAMED = {"name": "x", **SOURCE}
EO = {"exactly.once.support": "required"}
POSITION = {"partition": {"filename": "/tmp/none"}, "offset": {"position": 7}}  # noqa: S108

HTTP = httpx.Client(timeout=60)
Request = tuple[str, str, Any, dict[str, str]]


def ask(method: str, path: str, body: Any = None, **headers: str) -> Request:
    return method, path, body, {key.replace("_", "-"): value for key, value in headers.items()}


def make(config: dict[str, Any], **more: Any) -> Request:
    return ask("POST", "/connectors", {"name": "x", "config": config, **more})


ALONE = [
    *(ask(method, path) for method in ("PUT", "DELETE", "PATCH", "TRACE", "FOO") for path in ("/", "/connectors", "/nope")),
    *(ask("GET", path, content_type="text/plain") for path in ("/", "/health", "/connectors", "/admin/loggers")),
    *(ask("GET", "/connectors", accept=accept) for accept in ("text/html", "garbage", "*/*", "text/html, application/json")),
    *(ask("POST", "/connectors", "{}", content_type=kind) for kind in ("text/plain", "application/xml", "text/json")),
    *(ask("POST", f"/connectors/none/{rest}") for rest in ("restart", "restart?onlyFailed=x", "tasks/0/restart", "tasks/x/y")),
    *(ask("PUT", f"/connectors/none/{rest}") for rest in ("pause", "resume", "stop", "topics/reset", "fence")),
    *(ask("GET", f"/connectors/none{rest}") for rest in ("", "/", "/config", "/tasks", "/status", "/offsets", "/nope")),
    *(ask("DELETE", f"/connectors/none{rest}") for rest in ("", "/offsets")),
    ask("PATCH", "/connectors/none/config", {"a": None}),
    *(
        make({**SOURCE, **odd})
        for odd in (
            {"tasks.max": None},
            {"connector.class": None},
            {"more": None},
            {"name": "y"},
            {"transforms": "a"},
            {"predicates": "p"},
            EO,
            {"transaction.boundary": "connector"},
            {"key.converter": "Nope"},
            {"errors.tolerance": "x"},
            {"config.action.reload": "x"},
            {"topic": ""},
        )
    ),
    *(
        make({**SINK, **odd})
        for odd in (
            {"topics": ""},
            {"topics.regex": "a"},
            {"topics": "a", "errors.deadletterqueue.topic.name": "a"},
        )
    ),
    ask("PUT", VALIDATE, {**NAMED, "connector.class": "FileStreamSource"}),
    ask("PUT", VALIDATE, {**NAMED, "connector.class": FILE_SINK}),
    ask("PUT", "/connector-plugins/FileStreamSink/config/validate", NAMED),
    *(ask("GET", f"/connector-plugins/{name}/config") for name in ("Nope", "filestreamsource", "%20")),
    *(ask("PUT", "/admin/loggers/a.b", {"level": level}) for level in ("nope", None, 5, "ERROR", "error", " ERROR ", "INFO")),
    ask("PUT", "/admin/loggers/a.b?scope=cluster", {"level": "nope"}),
]
"""Requests that neither need nor create a connector."""

STEPS = [
    make(SOURCE, initial_state="stopped"),
    make(SOURCE),
    ask("PUT", "/connectors/x/config", {**SOURCE, "name": None}),
    ask("PUT", "/connectors/x/config", {**SOURCE, "name": "y"}),
    ask("PATCH", "/connectors/x/config", {"batch.size": "5", "nope": None}),
    ask("PATCH", "/connectors/x/config", {"name": None}),
    ask("PATCH", "/connectors/x/config", {"topic": None}),
    ask("PATCH", "/connectors/x/config", {"batch.size": "x"}),
    ask("GET", "/connectors/x/config"),
    *(ask("GET", f"/connectors?expand={what}") for what in ("info", "nope", "STATUS", "", "info&expand=info")),
    *(
        ask("PATCH", "/connectors/x/offsets", {"offsets": edits})
        for edits in (
            [],
            None,
            [{"partition": None, "offset": {"position": 1}}],
            [{**POSITION, "offset": {"position": -1}}],
            [{**POSITION, "offset": {"position": "x"}}],
            [{**POSITION, "offset": {}}],
            [{**POSITION, "partition": {}}],
            [POSITION],
        )
    ),
    ask("GET", "/connectors/x/offsets"),
    ask("DELETE", "/connectors/x/offsets"),
    ask("GET", "/connectors/x/offsets"),
    *(ask("POST", f"/connectors/x/tasks/{task}/restart") for task in ("0", "-1", "99999999999")),
    ask("DELETE", "/connectors/x"),
    ask("DELETE", "/connectors/x"),
    ask("POST", "/connectors", {"name": "it's a b", "config": SOURCE, "initial_state": "STOPPED"}),
    ask("DELETE", "/connectors/it's%20a%20b"),
]
"""The life of a connector that never runs, in this order."""


@pytest.fixture(scope="module")
def both(
    kafka_bootstrap: str, unique: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, str]]:
    """The URLs of Sluiceway's and Kafka Connect's REST APIs, each with its own internal topics."""
    theirs = PeerDistributed(
        kafka_bootstrap, unique("group"), tmp_path_factory.mktemp("peer"), (unique("config"), unique("offset"), unique("status"))
    )
    properties = {"bootstrap.servers": kafka_bootstrap, "group.id": unique("group"), "listeners": "http://127.0.0.1:0"}
    for kind in ("config", "offset", "status"):
        properties |= {f"{kind}.storage.topic": unique(kind), f"{kind}.storage.replication.factor": "1"}
    worker = WorkerConfig.of(properties | {"offset.storage.partitions": "1"})
    with theirs, open_stores(worker) as stores:
        herder = Herder(worker, stores.config, stores.status, stores.offsets)
        ours = RestServer(worker, lambda: herder)
        ours.start()
        try:
            yield ours.addresses[0], theirs.rest
        finally:
            ours.stop()


def answered(address: str, request: Request) -> tuple[int, str | None, Any]:
    """Return status, Location and body of a response, without the server's address."""
    method, path, body, headers = request
    content = body if body is None or isinstance(body, str) else json.dumps(body)
    headers = {"accept": "application/json"} | ({"content-type": "application/json"} if content else {}) | headers
    answer = HTTP.request(method, address + path, content=content, headers=headers)
    if answer.status_code == httpx.codes.CONFLICT and "rebalance" in answer.text:
        return answered(address, request)
    found = answer.json() if answer.content else None
    if isinstance(found, dict):
        found.pop("commit", None)  # of the root
        found.get("root", {}).pop("level", None)  # of the loggers
    where = answer.headers.get("location")
    return answer.status_code, where and where.removeprefix(address), found


@pytest.mark.parametrize("request_", ALONE, ids=lambda each: f"{each[0]} {each[1]} {json.dumps(each[2])}"[:120])
def test_requests_without_connectors_get_kafka_connects_responses(both: tuple[str, str], request_: Request) -> None:
    ours, theirs = both
    assert answered(ours, request_) == answered(theirs, request_)


def test_requests_over_a_connectors_lifecycle_get_kafka_connects_responses(both: tuple[str, str]) -> None:
    ours, theirs = both
    for number, step in enumerate(STEPS):
        assert (number, step[:3], answered(ours, step)) == (number, step[:3], answered(theirs, step))
