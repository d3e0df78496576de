"""``sluiceway get``."""

from __future__ import annotations

import json

import pytest

from sluiceway import exit_codes
from sluiceway.cli.main import main
from sluiceway.rest.client import RestError
from unit.cli.pretend_client import CONFIG, PretendClient, out

FAILED = "a-0: Error: boom\nSee docs/how-to/troubleshoot.md#failed.".splitlines()


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        (["get", "connectors"], ["NAME  TYPE    STATE    TASKS", "a     source  RUNNING  1 FAILED"]),
        (["get", "connectors", "a"], ["NAME  TYPE    STATE    TASKS", "a     source  RUNNING  1 FAILED"]),
        (["get", "connector", "a"], ["NAME  TYPE    STATE    TASKS", "a     source  RUNNING  1 FAILED"]),
        (
            ["get", "status", "a"],
            ["NAME  STATE    WORKER", "a     RUNNING  h:1", "a-0   FAILED   h:1", "", *FAILED],
        ),
        (["get", "tasks", "a"], ["TASK  CONFIG", "a-0   file=/f, db.password=[hidden]"]),
        (["get", "topics", "a"], ["TOPIC", "t"]),
        (["get", "offsets", "a"], ["PARTITION    OFFSET", "filename=/f  position=7"]),
        (["offsets", "get", "a"], ["PARTITION    OFFSET", "filename=/f  position=7"]),
        (["get", "plugins"], ["CLASS  TYPE    VERSION", "x.Y    source  1"]),
        (["plugins", "--all"], ["CLASS  TYPE    VERSION", "x.Y    source  1"]),
        (["get", "plugin", "Y"], ["KEY   TYPE    DEFAULT  IMPORTANCE", "file  STRING           HIGH"]),
        (["describe", "plugin", "Y"], ["KEY   TYPE    DEFAULT  IMPORTANCE", "file  STRING           HIGH", "", "file", "  D."]),
        (["get", "loggers"], ["LOGGER  LEVEL", "root    INFO"]),
        (["loggers", "get"], ["LOGGER  LEVEL", "root    INFO"]),
        (["loggers", "get", "x"], ["LOGGER  LEVEL", "x       WARN"]),
    ],
)
def test_each_kind_has_a_table_and_json_and_yaml(
    api: PretendClient, capsys: pytest.CaptureFixture[str], arguments: list[str], lines: list[str]
) -> None:
    import yaml

    assert main(arguments) == 0
    assert out(capsys) == lines
    assert main([*arguments, "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert main([*arguments, "-o", "yaml"]) == 0
    assert yaml.safe_load(capsys.readouterr().out) == document


def test_named_connectors_are_shown_and_no_others(api: PretendClient, capsys: pytest.CaptureFixture[str]) -> None:
    api.configs = dict.fromkeys(("a", "b", "c"), CONFIG)
    api.answer_connectors = lambda: ["a", "b", "c"]  # type: ignore[attr-defined]
    for arguments, names in (([], ["a", "b", "c"]), (["c", "a"], ["a", "c"])):
        assert main(["get", "connectors", *arguments]) == 0
        assert [line.split()[0] for line in out(capsys)[1:]] == names
    api.failures = {"status": RestError(404, "No status found for connector bb")}
    assert main(["get", "connectors", "bb"]) == exit_codes.NOT_FOUND
    assert capsys.readouterr().err == "sluiceway: No status found for connector bb. 'sluiceway get connectors' lists the names.\n"


def test_a_configs_secrets_are_shown_only_if_asked_for(api: PretendClient, capsys: pytest.CaptureFixture[str]) -> None:
    for output in ("table", "json", "yaml"):
        for what in (["get", "config", "a"], ["describe", "connector", "a"], ["get", "tasks", "a"]):
            assert main([*what, "-o", output]) == 0
    printed = capsys.readouterr().out
    assert "[hidden]" in printed
    assert "hunter2" not in printed
    assert main(["get", "config", "a", "--show-secrets", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == CONFIG


def test_the_language_of_a_plugin_that_is_installed_twice_is_shown(
    api: PretendClient, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    twice = {"class": "x.Z", "type": "sink", "version": "2", "used": "python"}
    monkeypatch.setattr(api, "answer_plugins", lambda: [{"class": "x.Y", "type": "source", "version": "1"}, twice])
    assert main(["get", "plugins"]) == 0
    assert [line.split() for line in out(capsys)] == [
        ["CLASS", "TYPE", "VERSION", "USED"],
        ["x.Y", "source", "1"],
        ["x.Z", "sink", "2", "python"],
    ]
    api.note = "x.Z is Sluiceway's class in Python here."
    assert main(["describe", "plugin", "Z"]) == 0
    assert out(capsys)[0] == api.note
