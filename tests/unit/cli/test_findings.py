"""The server's findings about a config, in readable form."""

from __future__ import annotations

from typing import Any

import pytest

from sluiceway.cli.findings import findings
from sluiceway.cli.main import main
from sluiceway.config.worker import WorkerConfig
from sluiceway.herder.validation import validate_config
from sluiceway.rest.client import RestError
from unit.cli.pretend_client import PretendClient


def key(name: str, *errors: str, type_: str = "STRING") -> dict[str, Any]:
    return {"definition": {"name": name, "type": type_}, "value": {"name": name, "value": "x", "errors": list(errors)}}


def test_a_config_in_order_is_valid() -> None:
    assert list(findings("c", {"file": "f"}, {"configs": [key("file")]}).lines()) == ["c: valid"]


def test_errors_are_told_with_key_and_value_but_without_secrets() -> None:
    config = {"tasks.max": "zero", "unlock": "hunter2", "db.password": "hunter3"}
    answer = {
        "configs": [
            key("tasks.max", "Invalid value zero\nfor configuration tasks.max"),
            key("unlock", "too short", type_="PASSWORD"),
            key("db.password", "too long"),
            key("topic", "missing", "still missing"),
        ]
    }
    assert list(findings("c", config, answer).lines()) == [
        "c: 5 error(s), 0 warning(s)",
        "  error    tasks.max = zero",
        "           Invalid value zero for configuration tasks.max",
        "  error    unlock = [hidden]",
        "           too short",
        "  error    db.password = [hidden]",
        "           too long",
        "  error    topic",
        "           missing",
        "  error    topic",
        "           still missing",
    ]


def test_a_misspelt_class_is_answered_with_one_that_the_server_recommends() -> None:
    error = "Invalid value JsonConvertr for configuration key.converter: Class JsonConvertr could not be found."
    misspelt = key("key.converter", error)
    assert findings("c", {}, {"configs": [misspelt]}).errors[0].text == error  # an older server recommends nothing
    misspelt["value"]["recommended_values"] = ["a.AvroConverter", "a.JsonConverter"]
    assert findings("c", {}, {"configs": [misspelt]}).errors[0].text == f"{error} Did you mean JsonConverter?"


def test_what_a_worker_must_have_enabled_is_said_with_its_key(api: PretendClient, capsys: pytest.CaptureFixture[str]) -> None:
    config = {"name": "c", "connector.class": "FileStreamSource", "file": "f", "topic": "t", "exactly.once.support": "required"}
    [error] = validate_config(config, WorkerConfig.of({})).errors
    told = f"{error} Set exactly.once.source.support=enabled in the worker file."
    assert findings("c", config, {"configs": [key("exactly.once.support", error)]}).errors[0].text == told
    api.failures = {"status": RestError(400, error)}
    main(["get", "status", "c"])
    assert capsys.readouterr().err == f"sluiceway: {told}\n"


def test_a_key_that_nobody_reads_is_a_warning_with_what_was_probably_meant() -> None:
    config = {"topcis": "t", "zzz": "1", "spark.executor.cores": "2", "transforms.a.b": "c", "producer.override.x": "1"}
    found = findings("c", config, {"configs": [key("topics")]})
    assert [(each.key, each.text) for each in found.warnings] == [
        ("topcis", "unknown key; did you mean topics?"),
        ("zzz", "unknown key: it has no effect"),
    ]
    assert found.errors == []
    assert found.to_json()["warnings"][0] == {"key": "topcis", "value": "t", "message": found.warnings[0].text}


def test_an_error_of_a_key_that_nothing_defines_is_told_once() -> None:
    undefined = {"definition": None, "value": {"name": "airflow.x", "value": "1", "errors": ["Unknown configuration"]}}
    other = {"definition": None, "value": {"name": "own", "value": "${vault:a}", "errors": ["an unknown config provider"]}}
    found = findings("c", {"file": "f", "airflow.x": "1", "own": "${vault:a}"}, {"configs": [key("file"), undefined, other]})
    assert [each.key for each in found.errors] == ["airflow.x", "own"]
    assert found.warnings == []
