"""The endpoints below ``/admin/loggers``."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from sluiceway.java_plugins import log_levels
from support.rest_replay import Connect


@pytest.fixture
def clean_loggers() -> Iterator[None]:
    known = {name: each for name, each in logging.root.manager.loggerDict.items() if isinstance(each, logging.Logger)}
    levels = {name: each.level for name, each in {"root": logging.getLogger(), **known}.items()}
    yield
    for name in list(logging.root.manager.loggerDict):
        if name.startswith(("org.a", "sluiceway.test")):
            logging.getLogger(name).setLevel(logging.NOTSET)
            del logging.root.manager.loggerDict[name]
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)
    logging.getLogger("sluiceway").setLevel(logging.NOTSET)


@pytest.mark.usefixtures("clean_loggers")
def test_a_level_holds_for_a_logger_and_for_those_below_it(connect: Connect) -> None:
    assert connect.http.put("/admin/loggers/org.a", json={"level": "TRACE"}).json() == ["org.a"]
    assert connect.http.put("/admin/loggers/org.a.b", json={"level": "debug"}).json() == ["org.a.b"]
    assert logging.getLogger("org.a.b").isEnabledFor(logging.DEBUG)
    assert connect.http.put("/admin/loggers/org.a?scope=worker", json={"level": "ERROR"}).json() == ["org.a", "org.a.b"]
    assert not logging.getLogger("org.a.b").isEnabledFor(logging.WARNING)
    shown = connect.http.get("/admin/loggers/org.a.b").json()
    assert shown["level"] == "ERROR"
    assert shown["last_modified"] > 1_700_000_000_000
    assert list(connect.http.get("/admin/loggers").json()) == ["org.a", "org.a.b", "root"]


@pytest.mark.usefixtures("clean_loggers")
def test_the_answer_names_only_loggers_that_had_another_level(connect: Connect) -> None:
    assert connect.http.put("/admin/loggers/org.a", json={"level": "TRACE"}).json() == ["org.a"]
    changed = connect.http.get("/admin/loggers/org.a").json()["last_modified"]
    assert connect.http.put("/admin/loggers/org.a", json={"level": " trace "}).json() == []
    assert connect.http.put("/admin/loggers/org.a.b", json={"level": "TRACE"}).json() == []
    assert connect.http.get("/admin/loggers").json()["org.a"]["last_modified"] == changed
    assert connect.http.get("/admin/loggers").json()["org.a.b"] == {"level": "TRACE", "last_modified": None}


@pytest.mark.usefixtures("clean_loggers")
def test_the_root_is_the_root_however_it_is_written(connect: Connect) -> None:
    connect.http.put("/admin/loggers/ROOT", json={"level": "FATAL"})
    told = connect.http.get("/admin/loggers").json()
    assert told["root"]["level"] == "FATAL"
    assert "ROOT" not in told


@pytest.mark.usefixtures("clean_loggers")
@pytest.mark.parametrize("level", ["OFF", "FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE", "ALL"])
def test_every_level_of_log4j_is_shown_as_it_was_set(connect: Connect, level: str) -> None:
    connect.http.put("/admin/loggers/org.a", json={"level": level.lower()})
    assert connect.http.get("/admin/loggers/org.a").json()["level"] == level


@pytest.mark.usefixtures("clean_loggers")
@pytest.mark.parametrize("query", ["", "?scope=cluster"])
def test_levels_of_java_loggers_are_shown_as_they_were_set(connect: Connect, query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from sluiceway.herder.loggers import follow_cluster_levels

    monkeypatch.setattr(log_levels, "_levels", {})
    follow_cluster_levels(connect.config, connect.loggers)
    changed = {}
    for name, level in (
        ("org.a.postgresql", "DEBUG"),
        ("org.a.postgresql.Task", "TRACE"),
        ("org.a.jdbc", "OFF"),
    ):
        connect.http.put(f"/admin/loggers/{name}{query}", json={"level": level})
        shown = changed[name] = connect.http.get(f"/admin/loggers/{name}").json()
        assert shown["level"] == level
        assert shown["last_modified"] > 1_700_000_000_000
    changed.pop("org.a.jdbc")  # Kafka Connect does not list loggers at OFF
    assert {name: each for name, each in connect.http.get("/admin/loggers").json().items() if name != "root"} == changed
    answer = connect.http.put(f"/admin/loggers/org.a.postgresql{query}", json={"level": "WARN"})
    assert answer.status_code == (204 if query else 200)
    shown = connect.http.get("/admin/loggers/org.a.postgresql.Task").json()
    assert shown["level"] == "WARN"
    assert shown["last_modified"] >= changed["org.a.postgresql.Task"]["last_modified"]


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({}, 400, "Desired 'level' parameter was not specified in request."),
        ({"level": None}, 400, "Desired 'level' parameter was not specified in request."),
        ({"level": 5}, 404, "invalid log level '5'."),
        ({"level": "WARNING"}, 404, "invalid log level 'WARNING'."),
        ({"level": ["INFO"]}, 400, '"level" must be a string.'),
    ],
)
@pytest.mark.parametrize("scope", ["worker", "cluster"])
def test_a_level_that_is_none_is_refused(connect: Connect, body: Any, status: int, message: str, scope: str) -> None:
    answer = connect.http.put(f"/admin/loggers/org.a?scope={scope}", json=body)
    assert (answer.status_code, answer.json()["message"]) == (status, message)


def test_an_unknown_logger_is_not_found(connect: Connect) -> None:
    answer = connect.http.get("/admin/loggers/org.nobody")
    assert (answer.status_code, answer.json()["message"]) == (404, "Logger org.nobody not found.")


@pytest.mark.usefixtures("clean_loggers")
def test_a_level_for_the_cluster_reaches_every_process_that_follows_the_topic(connect: Connect) -> None:
    from sluiceway.herder.loggers import Loggers, follow_cluster_levels

    here, driver, other = connect.loggers, Loggers("c"), Loggers("d")
    for each in (here, driver, other):
        follow_cluster_levels(connect.config, each)
    assert connect.http.put("/admin/loggers/org.a?scope=CLUSTER", json={"level": "trace"}).status_code == 204
    assert [each.get("org.a").level for each in (here, driver, other)] == ["TRACE"] * 3
    connect.http.put("/admin/loggers/connector.c?scope=cluster", json={"level": "DEBUG"})
    assert logging.getLogger("sluiceway").level == logging.DEBUG
    assert driver.get("connector.c").level == "DEBUG"
