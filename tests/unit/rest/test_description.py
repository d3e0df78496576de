"""The API's description at /docs, and the worker's keys that turn parts of the API off."""

from __future__ import annotations

import re
import warnings

import pytest

from support.rest_replay import Connect

SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"


def test_every_endpoint_is_described_once() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # FastAPI warns of two operations of one id
        described = Connect().http.get("/openapi.json").json()["paths"]
    operations = [(path, method) for path, methods in described.items() for method in methods]
    assert ("/connectors/{name}/offsets", "patch") in operations
    assert all(method != "head" for _, method in operations)
    assert all("segment" not in path and "fence" not in path for path in described)
    assert all(described[path][method]["summary"] for path, method in operations)
    for path, method in operations:
        if method in ("post", "patch") and not path.endswith("restart"):
            assert "example" in described[path][method]["requestBody"]["content"]["application/json"], path


def test_the_description_can_be_read_as_a_page() -> None:
    page = Connect().http.get("/docs")
    assert page.status_code == 200
    assert re.search(r"url: '/openapi.json'", page.text)


@pytest.mark.parametrize(
    ("key", "reading", "resetting"),
    [
        ("topic.tracking.enable", "Topic tracking is disabled.", "Topic tracking is disabled."),
        ("topic.tracking.allow.reset", None, "Topic tracking reset is disabled."),
    ],
)
def test_topics_are_not_told_where_tracking_is_off(key: str, reading: str | None, resetting: str) -> None:
    http = Connect({key: "false"}).http
    assert http.get("/connectors/a/topics").json().get("message") == reading
    answer = http.put("/connectors/a/topics/reset")
    assert (answer.status_code, answer.json()["message"]) == (403, resetting)


@pytest.mark.parametrize(
    ("version", "status", "message"),
    [
        ("4.3.0", 200, None),
        ("1", 400, f"Plugin {SOURCE} not found that matches the version range [1,1], available versions: [4.3.0]"),
        ("[1,", 400, "Invalid version specification: [1,"),
    ],
)
def test_a_plugins_options_may_be_asked_for_in_one_version(version: str, status: int, message: str | None) -> None:
    answer = Connect().http.get("/connector-plugins/FileStreamSource/config", params={"version": version})
    assert answer.status_code == status
    assert message is None or answer.json()["message"] == message


def test_only_connectors_are_listed_unless_all_plugins_are_asked_for() -> None:
    http = Connect().http

    def types(query: str) -> set[str]:
        return {plugin["type"] for plugin in http.get(f"/connector-plugins{query}").json()}

    assert types("") == types("?connectorsOnly") == types("?connectorsOnly=TRUE") == {"source", "sink"}
    assert {"converter", "header_converter", "predicate", "transformation"} < types("?connectorsOnly=false")


@pytest.mark.parametrize(
    ("version", "status", "document"),
    [
        (None, 200, {"class": SOURCE, "language": "python", "version": "4.3.0", "location": None, "note": None}),
        ("1", 400, None),
    ],
)
def test_the_implementation_of_a_plugin_can_be_asked_for(version: str | None, status: int, document: object) -> None:
    http = Connect().http
    answer = http.get("/connector-plugins/FileStreamSource/implementation", params={"version": version} if version else {})
    assert answer.status_code == status
    assert document is None or answer.json() == document
    assert http.get("/connector-plugins/None/implementation").status_code == 404
