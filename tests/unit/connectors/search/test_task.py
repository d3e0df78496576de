"""What the search sinks' task makes of the server's answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from sluiceway.api import SinkRecord
from sluiceway.connectors.search import ElasticsearchSinkConnector
from sluiceway.errors import ConnectError, RetriableError
from sluiceway.runtime.memory import MemorySinkContext
from support.eventually import LIMIT
from support.search.scripted import serving

DONE, LATER, BAD, FAILED = "done", "later", "bad", "failed"
PATIENT = {"connection.timeout.ms": str(int(LIMIT * 1000)), "read.timeout.ms": str(int(LIMIT * 1000))}
# The index is not asked for.
CONFIG = {
    "external.resource.usage": "INDEX",
    "topic.to.external.resource.mapping": "t:t",
    "behavior.on.null.values": "delete",
    **PATIENT,
}


def answer(action: str, status: int, kind: str | None = None) -> bytes:
    error = {} if kind is None else {"error": {"type": kind, "reason": "because", "caused_by": {"reason": "of that"}}}
    return json.dumps({"items": [{action: {"status": status, **error}}]}).encode()


def outcome(put: Callable[[], None], context: MemorySinkContext) -> tuple[str, str]:
    """Return what became of a put, and why."""
    try:
        put()
    except RetriableError as error:
        return LATER, str(error)
    except ConnectError as error:
        return FAILED, str(error)
    return (BAD, str(context.reported[0][1])) if context.reported else (DONE, "")


def put_one(body: bytes, value: Any = None, *, status: int = 200, **config: str) -> tuple[str, str]:
    """Put a record to a server with this answer; return what became of it, and why."""
    with serving(status, body) as url:
        settings = {**CONFIG, "connection.url": url, **{key.replace("_", "."): text for key, text in config.items()}}
        context, task = MemorySinkContext(settings), ElasticsearchSinkConnector.task_class()
        task.initialize(context)
        task.start(settings)
        try:
            return outcome(lambda: task.put([SinkRecord("t", 0, 7, value, key="k")]), context)
        finally:
            task.stop()


@pytest.mark.parametrize(
    ("action", "status", "kind", "expected"),
    [
        ("index", 200, None, DONE),
        ("index", 201, None, DONE),
        ("delete", 200, None, DONE),
        ("delete", 404, None, DONE),
        ("index", 409, "version_conflict_engine_exception", DONE),
        ("delete", 409, "version_conflict_engine_exception", DONE),
        ("index", 429, "rejected_execution_exception", LATER),
        ("index", 429, "circuit_breaking_exception", LATER),
        ("index", 503, "unavailable_shards_exception", LATER),
        ("delete", 503, "unavailable_shards_exception", LATER),
        ("index", 403, "cluster_block_exception", LATER),
        ("index", 400, "mapper_parsing_exception", BAD),
        ("index", 400, "illegal_argument_exception", BAD),
        ("index", 500, "node_closed_exception", LATER),
        ("index", 404, "document_missing_exception", BAD),
        ("index", 404, "index_not_found_exception", FAILED),
        ("delete", 404, "index_not_found_exception", FAILED),
        ("index", 403, "security_exception", FAILED),
        ("index", 400, "index_closed_exception", FAILED),
    ],
)
def test_what_an_answer_means(action: str, status: int, kind: str | None, expected: str) -> None:
    found, why = put_one(answer(action, status, kind), None if action == "delete" else {"a": 1})
    assert found == expected
    assert kind is None or expected is DONE or f"{kind}: because: of that" in why


@pytest.mark.parametrize(("status", "expected"), [(200, DONE), (409, LATER), (429, LATER), (400, BAD)])
def test_what_an_answer_to_an_update_means(status: int, expected: str) -> None:
    kind = None if status == 200 else "version_conflict_engine_exception"
    assert put_one(answer("update", status, kind), {"a": 1}, write_method="upsert")[0] == expected


def test_a_request_that_is_refused_as_a_whole() -> None:
    assert put_one(b'{"error": "no"}', {"a": 1}, status=413)[0] == BAD
    assert put_one(b'{"error": "no"}', {"a": 1}, status=400)[0] == BAD
    assert put_one(b'{"error": "no"}', {"a": 1}, status=503)[0] == LATER
    found, why = put_one(b'{"error": "no"}', {"a": 1}, status=401)
    assert (found, "connection.username" in why) == (FAILED, True)


def test_an_answer_that_lacks_documents_is_no_success() -> None:
    assert put_one(b'{"items": []}', {"a": 1}) == (FAILED, "The server answered for 0 of 1 documents.")


def test_malformed_documents_that_are_left_out_are_reported() -> None:
    assert put_one(answer("index", 400, "mapper_parsing_exception"), {"a": 1}, behavior_on_malformed_documents="ignore")[0] == BAD
