"""What the search sinks' task makes of the server's answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from sluiceway.api import SinkRecord
from sluiceway.connectors.search.sink import ElasticsearchSinkConnector, OpenSearchSinkConnector
from sluiceway.errors import ConfigError, ConnectError, RetriableError
from sluiceway.runtime.memory import MemorySinkContext
from support.eventually import LIMIT
from support.search.scripted import serving

DONE, LATER, BAD, FAILED = "done", "later", "bad", "failed"
PATIENT = {"connection.timeout.ms": str(int(LIMIT * 1000)), "read.timeout.ms": str(int(LIMIT * 1000))}
CONFIG = {"behavior.on.null.values": "delete", "schema.ignore": "true", "errors.tolerance": "all", **PATIENT}


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
    with serving(status, body, path="/_bulk") as url:
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
        ("delete", 404, "index_not_found_exception", DONE),
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


ANSWERS = [
    "{}",
    '{"error": {"type": "a"}}',
    '{"items": null}',
    '{"items": [{}]}',
    '{"items": [[]]}',
    '{"items": {"a": 1}}',
    "[]",
    "",
]
ITEMS = ['{"items": ["x"]}', '{"items": [{"index": {}}]}', '{"items": [{"index": {"status": "200"}}]}', "<html>"]


@pytest.mark.parametrize("body", [*ANSWERS, *ITEMS])
def test_an_answer_that_is_none_fails_the_task_with_its_text(body: str) -> None:
    found, why = put_one(body.encode(), {"a": 1})
    assert found == FAILED
    assert "gave no answer of the bulk API" in why or "is no search server" in why
    assert body in why


@pytest.mark.parametrize(
    "reason", ["no write index is defined for alias [t]", "only write ops with an op_type of create are allowed"]
)
def test_what_is_about_the_index_is_no_fault_of_a_document(reason: str) -> None:
    body = json.dumps({"items": [{"index": {"status": 400, "error": {"type": "illegal_argument_exception", "reason": reason}}}]})
    assert put_one(body.encode(), {"a": 1}, behavior_on_malformed_documents="ignore")[0] == FAILED


@pytest.mark.parametrize("status", [429, 500])
def test_a_server_that_refuses_whole_requests_ends_the_task(status: int) -> None:
    found, why = put_one(b'{"error": "full"}', {"a": 1}, status=status, max_retries="0")
    assert found == FAILED
    assert "full (after 1 attempts without progress)" in why


@pytest.mark.parametrize(
    ("status", "kind", "requests"),
    [(500, "a", 1), (429, "a", 1), (429, "circuit_breaking_exception", 7), (413, "a", 7), (400, "a", 7)],
)
def test_a_request_is_parted_if_it_is_too_large_or_cannot_be_read(status: int, kind: str, requests: int) -> None:
    seen: list[str] = []
    body = json.dumps({"error": {"type": kind, "reason": "no"}}).encode()
    with serving(status, body, path="/_bulk", seen=seen) as url:
        settings = {**CONFIG, "connection.url": url}
        context, task = MemorySinkContext(settings), ElasticsearchSinkConnector.task_class()
        task.initialize(context)
        task.start(settings)
        outcome(lambda: task.put([SinkRecord("t", 0, n, {"a": 1}, key=f"k{n}") for n in range(4)]), context)
        task.stop()
    assert sum(path.startswith("/_bulk") for path in seen) == requests


def test_a_full_disk_is_waited_for_also_where_an_index_is_made() -> None:
    body = b'{"error": {"type": "index_create_block_exception", "reason": "full"}}'
    with serving(403, body) as url:
        settings = {**CONFIG, "connection.url": url}
        context, task = MemorySinkContext(settings), ElasticsearchSinkConnector.task_class()
        task.initialize(context)
        task.start(settings)
        found, why = outcome(lambda: task.put([SinkRecord("t", 0, 7, {"a": 1}, key="k")]), context)
        task.stop()
    assert (found, "index_create_block_exception" in why) == (LATER, True)


def test_another_server_is_asked_while_one_is_not_ready() -> None:
    with serving(503, b'{"error": "no master"}') as starting, serving(200, answer("index", 201), path="/_bulk") as ready:
        settings = {**CONFIG, "connection.url": f"{starting},{ready}"}
        context, task = MemorySinkContext(settings), ElasticsearchSinkConnector.task_class()
        task.initialize(context)
        task.start(settings)
        assert outcome(lambda: task.put([SinkRecord("t", 0, 7, {"a": 1}, key="k")]), context) == (DONE, "")
        task.stop()


@pytest.mark.parametrize(("tolerance", "reported"), [("all", BAD), ("none", DONE)])
def test_a_document_that_is_left_out_never_fails_the_task(tolerance: str, reported: str) -> None:
    bad = answer("index", 400, "mapper_parsing_exception")
    found = put_one(bad, {"a": 1}, behavior_on_malformed_documents="warn", errors_tolerance=tolerance)
    assert found[0] == reported


def test_report_needs_a_reporter() -> None:
    settings = {"connection.url": "http://127.0.0.1:1", "behavior.on.malformed.documents": "report"}
    task = OpenSearchSinkConnector.task_class()
    task.initialize(MemorySinkContext(settings, reports=False))
    with pytest.raises(ConfigError, match="needs a dead letter queue"):
        task.start(settings)


def test_an_answer_that_lacks_documents_is_no_success() -> None:
    assert put_one(b'{"items": []}', {"a": 1}) == (FAILED, "The server answered for 0 of 1 documents.")


def test_malformed_documents_that_are_left_out_are_reported() -> None:
    assert put_one(answer("index", 400, "mapper_parsing_exception"), {"a": 1}, behavior_on_malformed_documents="ignore")[0] == BAD
