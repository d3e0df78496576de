"""Answers that the recorded exchanges leave open: those of Kafka Connect 4.3.0 when asked, and ours alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from fastapi import Depends, FastAPI, HTTPException
from fastapi.testclient import TestClient

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import (
    AlreadyExistsError,
    ConfigError,
    ConflictError,
    ConnectError,
    InvalidConfigError,
    KafkaClientError,
    NotFoundError,
)
from sluiceway.herder import Herder
from sluiceway.rest.app import make_app
from sluiceway.rest.connector_details import ConnectorDetails
from sluiceway.rest.errors import status_code
from sluiceway.storage.memory import MemoryConfigBackingStore, MemoryStatusBackingStore

SOURCE = {"connector.class": "FileStreamSource", "file": "/f", "topic": "t"}


def new_herder() -> Herder:
    return Herder(WorkerConfig.of({}), MemoryConfigBackingStore(), MemoryStatusBackingStore())


@pytest.fixture(scope="module")
def app() -> FastAPI:
    """One app for all tests, because FastAPI inspects each endpoint again for each app."""
    return make_app(new_herder, kafka_cluster_id=lambda: "abc")


@pytest.fixture
def http(app: FastAPI) -> Iterator[TestClient]:
    herder = new_herder()
    app.state.herder_provider = lambda: herder
    app.state.connector_details = ConnectorDetails()
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


def create(http: TestClient, name: Any = "a", **fields: Any) -> Any:
    return http.post("/connectors", json={"name": name, "config": SOURCE} | fields)


def message(answer: Any) -> str:
    return str(answer.json()["message"])


def test_the_root_tells_the_version_that_clients_look_at_and_ours(http: TestClient) -> None:
    root = http.get("/").json()
    assert (root["version"], root["kafka_cluster_id"]) == ("4.3.0", "abc")
    assert root["commit"].startswith("sluiceway-")


def test_pause_and_resume_answer_202_and_stop_204(http: TestClient) -> None:
    create(http)
    answers = [http.put(f"/connectors/a/{verb}") for verb in ("pause", "resume", "stop")]
    assert [(answer.status_code, answer.content) for answer in answers] == [(202, b""), (202, b""), (204, b"")]
    assert http.get("/connectors/a/status").json()["connector"]["state"] == "STOPPED"


@pytest.mark.parametrize("verb", ["pause", "resume", "stop"])
def test_an_unknown_connector_cannot_be_told_anything(http: TestClient, verb: str) -> None:
    answer = http.put(f"/connectors/none/{verb}")
    assert (answer.status_code, answer.json()) == (404, {"error_code": 404, "message": "Unknown connector none"})


@pytest.mark.parametrize("path", ["/connectors/none", "/connectors/none/config", "/connectors/none/tasks"])
def test_an_unknown_connector_is_not_found(http: TestClient, path: str) -> None:
    assert message(http.get(path)) == "Connector none not found"


def test_a_new_connector_has_a_status_at_once(http: TestClient) -> None:
    create(http)
    status = http.get("/connectors/a/status").json()
    assert status["connector"]["state"] == "UNASSIGNED"
    assert status["connector"]["version"] is None
    assert "trace" not in status["connector"]
    assert (status["tasks"], status["type"]) == ([], "source")


def test_a_slash_at_the_end_of_a_path_does_not_matter(http: TestClient) -> None:
    create(http)
    assert http.get("/connectors/").json() == ["a"]
    assert http.get("/connectors/a/").json()["name"] == "a"


def test_head_answers_as_get_does(http: TestClient) -> None:
    assert http.head("/connectors").headers["content-type"] == "application/json"
    assert http.head("/connectors/none").status_code == 404


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("/connectors/a", "DELETE,GET,HEAD,OPTIONS"),
        ("/connectors/a/pause", "OPTIONS,PUT"),
        ("/connectors/a/config", "GET,HEAD,OPTIONS,PATCH,PUT"),
    ],
)
def test_options_tells_the_methods_of_a_path(http: TestClient, path: str, methods: str) -> None:
    answer = http.options(path)
    assert (answer.status_code, answer.headers["allow"]) == (200, methods)


def test_options_of_nothing_is_not_found(http: TestClient) -> None:
    assert http.options("/nope").status_code == 404


@pytest.mark.parametrize(
    ("accept", "status"), [("text/plain;q=0.5, application/*", 200), ("*/*", 200), ("text/html,image/*", 406)]
)
def test_answers_are_json_or_nothing(http: TestClient, accept: str, status: int) -> None:
    assert http.get("/connectors", headers={"accept": accept}).status_code == status


def test_a_path_that_is_not_there_is_not_found_whatever_is_accepted(http: TestClient) -> None:
    assert http.get("/nope", headers={"accept": "text/html"}).status_code == 404


def test_json_with_a_charset_is_taken(http: TestClient) -> None:
    body = b'{"name": "a", "config": {"connector.class": "FileStreamSource", "topic": "t"}}'
    assert http.post("/connectors", content=body, headers={"content-type": "Application/JSON; charset=utf-8"}).status_code == 201


@pytest.mark.parametrize("name", [None, "", "  \t"])
def test_a_connector_needs_a_name(http: TestClient, name: str | None) -> None:
    answer = create(http, name)
    assert answer.status_code == 400
    assert "Invalid value  for configuration name: String may not be empty" in message(answer)


def test_a_name_is_not_taken_from_the_config(http: TestClient) -> None:
    answer = http.post("/connectors", json={"config": SOURCE | {"name": "b"}})
    assert message(answer) == "Connector name configuration (b) doesn't match connector name in the URL ()"


def test_numbers_and_booleans_become_the_text_they_were_written_as(http: TestClient) -> None:
    values = b'"connector.class": "FileStreamSource", "topic": "t", "a": 3.50, "b": true, "c": 12345678901234567890'
    body = b'{"name": 5, "config": {' + values + b"}}"
    config = http.post("/connectors", content=body, headers={"content-type": "application/json"}).json()["config"]
    assert (config["name"], config["a"], config["b"], config["c"]) == ("5", "3.50", "true", "12345678901234567890")


def test_a_null_value_is_refused_unless_the_connector_declares_the_key(http: TestClient) -> None:
    answer = create(http, config=SOURCE | {"more": None})
    assert answer.status_code == 400
    assert "1 error(s):\nNull value can not be supplied as the configuration value." in message(answer)
    answer = create(http, config=SOURCE | {"file": None, "name": None})
    assert answer.status_code == 201
    assert "file" not in answer.json()["config"]


def test_a_patch_may_not_take_the_name_away(http: TestClient) -> None:
    create(http)
    answer = http.patch("/connectors/a/config", json={"name": None})
    assert answer.status_code == 400
    assert 'Missing required configuration "name"' in message(answer)


@pytest.mark.parametrize("path", ["/connectors", "/connector-plugins", "/admin/loggers", "/connectors/a/status"])
def test_a_read_that_says_it_sends_something_else_than_json_is_refused(http: TestClient, path: str) -> None:
    assert http.get(path, headers={"content-type": "text/plain"}).status_code == 415
    assert http.get("/", headers={"content-type": "text/plain"}).status_code == 200
    assert http.get("/health", headers={"content-type": "text/plain"}).status_code == 200


def test_a_method_that_a_path_has_not_is_answered_with_those_it_has(http: TestClient) -> None:
    answer = http.request("FOO", "/connectors")
    assert (answer.status_code, message(answer)) == (405, "HTTP 405 Method Not Allowed")
    assert answer.headers["allow"] == "GET,HEAD,OPTIONS,POST"


def test_an_initial_state_of_null_is_none(http: TestClient) -> None:
    assert create(http, initial_state=None).status_code == 201


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b'"x"', b"\xff", b'{"a": NaN', b'{"a": NaN}', b"1", b"[" * 100_000, b'{"a": "\\ud800"}'],
    ids=lambda body: repr(body[:20]),
)
def test_a_body_that_cannot_be_read_is_a_bad_request(http: TestClient, body: bytes) -> None:
    create(http)
    requests = [
        ("POST", "/connectors"),
        ("PUT", "/connectors/a/config"),
        ("PATCH", "/connectors/a/config"),
        ("PATCH", "/connectors/a/offsets"),
        ("PUT", "/connector-plugins/FileStreamSource/config/validate"),
        ("POST", "/connector-plugins/FileStreamSource/config/preview"),
        ("PUT", "/admin/loggers/x.y"),
    ]
    for method, path in requests:
        answer = http.request(method, path, content=body, headers={"content-type": "application/json"})
        assert (answer.status_code, answer.json()["error_code"]) == (400, 400), path
    assert http.get("/connectors").json() == ["a"]


@pytest.mark.parametrize(("method", "path"), [("DELETE", "/connectors/a%2Fb"), ("PUT", "/connectors/a%2Fb/config")])
def test_nothing_is_made_or_deleted_by_an_ambiguous_path_that_names_nothing(http: TestClient, method: str, path: str) -> None:
    assert http.request(method, "http://testserver" + path, json=SOURCE).status_code == 400
    assert http.get("/connectors").json() == []


def test_what_is_wrong_with_json_is_told_by_its_place_and_never_quoted(http: TestClient) -> None:
    body = b'{"name": "a",\n "config": {"password": "hunter2"'
    answer = http.post("/connectors", content=body, headers={"content-type": "application/json"})
    assert message(answer) == "The request body is not valid JSON: Expecting ',' delimiter at line 2, column 34."


@pytest.mark.parametrize(
    ("method", "path"), [("PUT", "/connectors/a/config"), ("PATCH", "/connectors/a/config"), ("DELETE", "/connectors/a")]
)
def test_a_body_of_no_or_another_type_is_not_taken(http: TestClient, method: str, path: str) -> None:
    create(http)
    for headers in ({}, {"content-type": "text/plain"}, {"content-type": "application/merge-patch+json"}):
        assert http.request(method, path, content=b"{}", headers=headers).status_code == 415


@pytest.mark.parametrize("name", ["a b", "ü漢", "a+b", "a:b@c", "a?b#c", "a;b=c", 'a"b', "a{b}", "a&b", "a.b..c", "~"])
def test_a_connector_of_any_name_is_found_again_at_its_location(http: TestClient, name: str) -> None:
    created = create(http, name)
    assert created.status_code == 201
    path = created.headers["location"].removeprefix("http://testserver")
    assert http.get(path).json()["name"] == name
    assert http.delete(path).status_code == 204
    assert http.get("/connectors").json() == []


@pytest.mark.parametrize("name", ["a/b", "/", "100%", "%41", "a\\b", "a/b/status", "a%2Fb", "connectors/x"])
def test_a_connector_that_kafka_connect_cannot_reach_is_reached_and_deleted_here(http: TestClient, name: str) -> None:
    assert create(http, name).status_code == 201
    path = f"/connectors/{quote(name, safe='')}"
    assert http.get(path).json()["name"] == name
    assert http.get(f"{path}/status").json()["name"] == name
    assert http.put(f"{path}/pause").status_code == 202
    assert http.put(f"{path}/config", json=SOURCE).status_code == 200
    assert http.delete(path).status_code == 204
    assert http.get("/connectors").json() == []


@pytest.mark.parametrize(
    "path",
    [
        "/connectors/a%2fb",
        "/connectors/a%2Fb/config",
        "/connectors/100%25",
        "/connectors/a%5Cb",
        "/connectors/a%2Fb/nope",
        "//connectors",
        "/connectors//x",
        "/connectors/%00",
        "/connectors/a%0Ab/status",
        "/connectors/%zz",
        "/connectors/%",
        "/connectors/%ff",
        "/connectors/a%EF%B7%90b",
        "/connector%2Fplugins",
    ],
)
def test_an_ambiguous_or_bad_path_is_refused_unless_it_names_a_connector(http: TestClient, path: str) -> None:
    answer = http.get("http://testserver" + path)
    assert (answer.status_code, answer.json()["error_code"]) == (400, 400)
    assert http.get("/connectors").json() == []


def test_a_put_to_a_padded_name_keeps_the_blanks(http: TestClient) -> None:
    answer = http.put("/connectors/%20a%20/config", json=SOURCE)
    assert (answer.status_code, answer.json()["name"]) == (201, " a ")
    assert answer.headers["location"] == "http://testserver/connectors/%20a%20"


@pytest.mark.parametrize("task", ["x", "99999999999", "2147483648", "1.0"])
def test_a_task_is_a_number(http: TestClient, task: str) -> None:
    create(http)
    assert message(http.get(f"/connectors/a/tasks/{task}/status")) == "HTTP 404 Not Found"


def test_expand_gives_what_was_asked_for_of_every_connector(http: TestClient) -> None:
    create(http, "a")
    create(http, "b")
    expanded = http.get("/connectors?expand=info&expand=status&expand=foo").json()
    assert {name: set(parts) for name, parts in expanded.items()} == {"a": {"info", "status"}, "b": {"info", "status"}}
    assert set(http.get("/connectors?expand=status").json()["a"]) == {"status"}


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (NotFoundError("x"), 404),
        (AlreadyExistsError("x"), 409),
        (ConflictError("x"), 409),
        (InvalidConfigError(["x"]), 400),
        (ConfigError("x"), 400),
        (KafkaClientError("x"), 500),
        (ConnectError("x"), 500),
        (RuntimeError("x"), 500),
    ],
)
def test_each_error_has_its_code(error: Exception, code: int) -> None:
    assert status_code(error) == code

    def fail() -> Herder:
        raise error

    answer = TestClient(make_app(fail), raise_server_exceptions=False).get("/connectors")
    assert (answer.status_code, answer.json()["error_code"]) == (code, code)


def test_an_unexpected_errors_text_stays_out_of_the_answer() -> None:
    def fail() -> Herder:
        raise RuntimeError("password=hunter2")

    answer = TestClient(make_app(fail), raise_server_exceptions=False).get("/connectors")
    assert answer.status_code == 500
    assert "RuntimeError" in message(answer)
    assert "hunter2" not in answer.text


def refuse_strangers() -> None:
    raise HTTPException(401, headers={"WWW-Authenticate": "Bearer"})


def test_a_dependency_guards_every_endpoint_and_answers_in_connects_form() -> None:
    http = TestClient(make_app(new_herder, dependencies=[Depends(refuse_strangers)]))
    for path in ("/", "/connectors", "/connectors/a/status"):
        answer = http.get(path)
        assert (answer.status_code, answer.json()) == (401, {"error_code": 401, "message": "HTTP 401 Unauthorized"})
        assert answer.headers["www-authenticate"] == "Bearer"
    assert http.put("/connectors/a/config", json=SOURCE).status_code == 401


def test_the_app_works_mounted_below_a_prefix() -> None:
    herder = new_herder()
    outer = FastAPI()
    outer.mount("/connect", make_app(lambda: herder))
    http = TestClient(outer)
    created = http.post("/connect/connectors", json={"name": "a b", "config": SOURCE})
    assert created.headers["location"] == "http://testserver/connect/connectors/a%20b"
    assert http.get(created.headers["location"]).json()["name"] == "a b"
    assert http.get("/connect/").json()["version"] == "4.3.0"
    assert http.get("/connect/connectors/").json() == ["a b"]
    assert http.options("/connect/connectors").headers["allow"] == "GET,HEAD,OPTIONS,POST"
    assert http.get("/connect/nope").json() == {"error_code": 404, "message": "HTTP 404 Not Found"}
