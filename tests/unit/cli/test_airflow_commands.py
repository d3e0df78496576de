"""``airflow sluiceway``: the same verbs inside Airflow's command line."""

from __future__ import annotations

import argparse
import subprocess
import sys
from typing import Any

import pytest
from airflow.cli.cli_config import ActionCommand, GroupCommand

from sluiceway.cli import airflow_commands, main


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("SLUICEWAY_SERVER", raising=False)
    monkeypatch.delenv("SLUICEWAY_CONTEXT", raising=False)
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "http://air.example:8080/")


def _parse(*words: str) -> argparse.Namespace:
    """Parse as Airflow does it: a parser for each command, filled by its args, its function set last."""
    [group] = airflow_commands.get_cli_commands()
    assert isinstance(group, GroupCommand)
    subparsers = argparse.ArgumentParser().add_subparsers()
    for command in group.subcommands:
        assert isinstance(command, ActionCommand)
        parser = subparsers.add_parser(command.name, help=command.help)
        for arg in command.args:
            arg.add_to_parser(parser)
        parser.set_defaults(func=command.func)
    return subparsers.choices[words[0]].parse_args(words[1:])


def _asked(monkeypatch: pytest.MonkeyPatch, *words: str) -> tuple[int, argparse.Namespace]:
    seen: list[argparse.Namespace] = []

    def run_verb(options: argparse.Namespace) -> int:
        seen.append(options)
        return 5

    monkeypatch.setattr(main, "run_verb", run_verb)
    options = _parse(*words)
    with pytest.raises(SystemExit) as caught:
        options.func(options)
    return int(str(caught.value.code)), seen[0]


def test_a_verb_keeps_its_options_and_its_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    code, options = _asked(monkeypatch, "restart", "one", "--tasks", "--only-failed")
    assert code == 5
    assert (options.names, options.tasks, options.only_failed) == (["one"], True, True)
    assert options.server == "http://air.example:8080/sluiceway"


def test_verbs_of_one_module_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [_asked(monkeypatch, verb, "one")[1].verb for verb in ("pause", "resume")] == ["pause", "resume"]


@pytest.mark.parametrize(
    ("settings", "server"),
    [
        ({}, "http://localhost:8080"),
        ({"API__PORT": "9090"}, "http://localhost:9090"),
        ({"API__PORT": "9090", "API__SSL_CERT": "/cert.pem"}, "https://localhost:9090"),
        ({"CORE__EXECUTION_API_SERVER_URL": "http://api:8080/execution/"}, "http://api:8080"),
        ({"CORE__EXECUTION_API_SERVER_URL": "http://api/air/execution"}, "http://api/air"),
        ({"API__BASE_URL": "http://a", "CORE__EXECUTION_API_SERVER_URL": "http://b/execution/"}, "http://a"),
    ],
)
def test_the_api_server_is_found_by_what_airflow_itself_uses(
    settings: dict[str, str], server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AIRFLOW__API__BASE_URL")
    for name in ("API__PORT", "API__SSL_CERT", "CORE__EXECUTION_API_SERVER_URL"):
        monkeypatch.delenv(f"AIRFLOW__{name}", raising=False)
    for name, value in settings.items():
        monkeypatch.setenv(f"AIRFLOW__{name}", value)
    assert _asked(monkeypatch, "pause", "one")[1].server == f"{server}/sluiceway"


@pytest.mark.parametrize(("words", "server"), [(["--server", "http://x"], "http://x"), (["--context", "prod"], None)])
def test_a_server_that_is_named_wins(monkeypatch: pytest.MonkeyPatch, words: list[str], server: str | None) -> None:
    assert _asked(monkeypatch, "pause", "one", *words)[1].server == server


def test_a_server_in_the_environment_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICEWAY_SERVER", "http://x")
    assert _asked(monkeypatch, "pause", "one")[1].server is None


def test_a_verb_without_a_server_runs_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _asked(monkeypatch, "config", "airflow")[1].system == "airflow"


def test_every_verb_but_those_that_start_and_end_things_is_there() -> None:
    [group] = airflow_commands.get_cli_commands()
    [ours] = [action for action in main.parser()._actions if isinstance(action, argparse._SubParsersAction)]
    left_out = {
        "demo",
        "up",
        "down",
        "ps",
        "broker",
        "rest",
        "standalone",
        "logs",
        "package",
        "contexts",
        "completion",
        "migrate",
        "new",
        # They read Kafka, not the REST API, with a worker file.
        "topics",
        "read",
    }
    assert isinstance(group, GroupCommand)
    assert {command.name for command in group.subcommands} == set(ours.choices) - left_out


def test_declaring_the_verbs_costs_airflows_other_commands_little() -> None:
    check = (
        "import sys, airflow.cli.cli_config; before = set(sys.modules);"
        "from sluiceway.cli.airflow_commands import get_cli_commands; get_cli_commands();"
        "print(sorted({m.split('.')[0] for m in set(sys.modules) - before} & "
        "{'fastapi', 'confluent_kafka', 'pyspark', 'uvicorn', 'httpx', 'pydantic', 'sqlalchemy'}))"
    )
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip().splitlines()[-1] == "[]"
