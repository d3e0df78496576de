"""The entry point: exit codes, start-up time, imports."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sluiceway import exit_codes
from sluiceway.cli.main import main, run_verb
from sluiceway.errors import ConfigError, ConnectError, InvalidConfigError, MissingToolError, NotFoundError
from sluiceway.installation import install_command
from sluiceway.rest.client import RestError
from unit.cli.pretend_client import PretendClient


@pytest.mark.parametrize(
    ("arguments", "calls"),
    [
        (["pause", "connector", "a", "b"], [("pause", "a"), ("pause", "b")]),
        (["stop", "connector"], [("stop", "connector")]),
        (["restart", "a"], [("restart", "a", ("tasks", False), ("only_failed", False))]),
        (["restart", "a", "--tasks", "--only-failed"], [("restart", "a", ("tasks", True), ("only_failed", True))]),
        (["restart", "a", "--task", "0", "--task", "2"], [("restart_task", "a", 0), ("restart_task", "a", 2)]),
        (["offsets", "reset", "a"], [("reset_offsets", "a")]),
        (
            ["offsets", "set", "a", "my.topic:3", "42"],
            [
                (
                    "alter_offsets",
                    "a",
                    [{"partition": {"kafka_topic": "my.topic", "kafka_partition": 3}, "offset": {"kafka_offset": 42}}],
                )
            ],
        ),
        (
            ["offsets", "set", "a", "t:0", "null"],
            [("alter_offsets", "a", [{"partition": {"kafka_topic": "t", "kafka_partition": 0}, "offset": None}])],
        ),
        (
            ["offsets", "set", "a", '{"filename": "/f"}', '{"position": 1}'],
            [("alter_offsets", "a", [{"partition": {"filename": "/f"}, "offset": {"position": 1}}])],
        ),
        (["loggers", "set", "x", "debug", "--scope", "cluster"], [("set_logger", "x", "debug", ("cluster", True))]),
    ],
)
def test_each_verb_asks_for_what_it_says(api: PretendClient, arguments: list[str], calls: list[tuple[Any, ...]]) -> None:
    assert main(arguments) == 0
    assert api.calls == calls


@pytest.mark.parametrize(
    ("status", "code", "hint"),
    [
        (0, 5, "sluiceway up"),
        (400, 3, ""),
        (401, 6, "contexts set"),
        (403, 6, "contexts set"),
        (404, 4, ""),
        (409, 7, ""),
        (500, 1, ""),
    ],
)
def test_the_exit_code_tells_what_kind_of_failure_it_was(
    api: PretendClient, capsys: pytest.CaptureFixture[str], status: int, code: int, hint: str
) -> None:
    api.failures = {"pause": RestError(status, "No.")}
    assert main(["pause", "a"]) == code
    printed = capsys.readouterr()
    assert printed.err.startswith("sluiceway: No.")
    assert hint in printed.err
    assert printed.err.count("\n") == 1
    assert printed.out == ""


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidConfigError(['Missing required configuration "topics"']), exit_codes.REFUSED),
        (NotFoundError("Connector a has no topics."), exit_codes.NOT_FOUND),
        (ConfigError("No topics given."), exit_codes.FAILED),
        (MissingToolError("No broker, so no topics."), exit_codes.FAILED),
    ],
)
def test_an_error_that_the_command_finds_itself_ends_with_the_code_of_its_kind(
    capsys: pytest.CaptureFixture[str], error: ConnectError, code: int
) -> None:
    def run(_options: argparse.Namespace) -> int:
        raise error

    assert run_verb(argparse.Namespace(run=run)) == code
    assert "topics" in capsys.readouterr().err


def test_a_call_of_the_rest_api_imports_neither_airflow_nor_spark_nor_a_kafka_client() -> None:
    heavy = "'airflow', 'pyspark', 'confluent_kafka', 'fastapi', 'uvicorn'"
    code = (
        "import sys; from sluiceway.cli.main import main; code = main(['get', 'connectors', '--server', 'http://127.0.0.1:1']); "
        f"print(code, [m for m in ({heavy}) if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "5 []"


@pytest.mark.parametrize(
    ("module", "extra"),
    [("fastapi", "standalone"), ("uvicorn.config", "standalone"), ("pyspark.sql", "standalone"), ("airflow", "airflow")],
)
def test_a_command_without_its_packages_says_which_extra_to_install(
    capsys: pytest.CaptureFixture[str], module: str, extra: str
) -> None:
    def run(_options: argparse.Namespace) -> int:
        raise ModuleNotFoundError(f"No module named {module!r}", name=module)

    assert run_verb(argparse.Namespace(run=run)) == 1
    printed = capsys.readouterr().err
    assert f"needs the Python package {module.partition('.')[0]}. Run: {install_command(extra)}" in printed
    assert printed.splitlines()[1:] == ["See docs/how-to/troubleshoot.md#missing-package."]


def test_a_defect_keeps_its_trace() -> None:
    def run(_options: argparse.Namespace) -> int:
        raise ModuleNotFoundError("No module named 'sluiceway.typo'", name="sluiceway.typo")

    with pytest.raises(ModuleNotFoundError):
        run_verb(argparse.Namespace(run=run))


def test_a_command_whose_reader_has_ended_ends_without_a_traceback(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def print_into_a_closed_pipe(_options: object) -> int:
        raise BrokenPipeError

    with (tmp_path / "out").open("w") as output:
        monkeypatch.setattr(sys, "stdout", output)
        assert run_verb(argparse.Namespace(run=print_into_a_closed_pipe)) == exit_codes.FAILED
