"""The log files of a stack on this machine."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from sluiceway import exit_codes
from sluiceway.cli.log_files import finder, follow, last_lines, readable
from sluiceway.cli.main import main
from sluiceway.rest.client import RestError
from unit.cli.pretend_client import PretendClient, out


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "broker").mkdir()
    (tmp_path / "rest.log").write_text("one\ntwo\nthree\nhalf")
    (tmp_path / "broker" / "kafka.log").write_text("k\n")
    return tmp_path


def attempt(home: Path, number: int, text: str, *, dag: str = "my_x20sink", when: int = 0) -> Path:
    file = home / "airflow" / "logs" / f"dag_id={dag}" / "run_id=r" / "task_id=run" / f"attempt={number}.log"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    os.utime(file, (when, when))
    return file


def test_the_last_lines_of_a_process_are_shown(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["logs", "rest", "-n", "2", "--home", str(home)]) == 0
    assert capsys.readouterr().out == "two\nthree\n"
    assert main(["logs", "--home", str(home)]) == 0
    assert capsys.readouterr().out == f"kafka  {home}/broker/kafka.log\nrest  {home}/rest.log\n"


def test_a_connectors_log_is_that_of_its_tasks_newest_attempt(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    attempt(home, 2, '{"timestamp":"T","level":"info","event":"new","dag_id":"d"}\n', when=20)
    attempt(home, 1, "old\n", when=10)
    assert main(["logs", "my sink", "--home", str(home)]) == 0
    assert capsys.readouterr().out == "[T] INFO new\n"
    assert main(["logs", "my sink", "--raw", "--home", str(home)]) == 0
    assert capsys.readouterr().out.startswith('{"timestamp"')


def test_the_error_of_a_driver_that_died_comes_first_with_its_trace(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def text(*events: str) -> str:
        return "".join(json.dumps({"timestamp": "T", "level": "info", "event": event}) + "\n" for event in events)

    trace = ("Traceback (most recent call last):", 'File "a.py", line 1', "ModuleNotFoundError: No module named 'foo'")
    died = "[my sink|worker] The driver died with exit code 1; Airflow starts it again in 4 s"
    submitted, airflow = "spark-submit: spark-submit --name x", ["Airflow's own"] * 5
    head = "The driver's last error: ModuleNotFoundError: No module named 'foo'"
    attempt(home, 1, text(submitted, *trace, died, *airflow))
    assert main(["logs", "my sink", "-n", "2", "--home", str(home)]) == 0
    assert out(capsys) == [head, *trace, died, *airflow, "...", "", *["[T] INFO Airflow's own"] * 2]
    assert main(["logs", "my sink", "-n", "50", "--home", str(home)]) == 0
    assert out(capsys)[:3] == [head, "", f"[T] INFO {submitted}"]
    for running in ((submitted, *trace), (submitted, *trace, died, submitted, "up")):
        attempt(home, 1, text(*running))
        assert main(["logs", "my sink", "--home", str(home)]) == 0
        assert head not in out(capsys)


@pytest.mark.parametrize(("level", "found"), [("error", True), ("critical", True), ("warning", False), ("info", False)])
def test_without_a_trace_the_error_is_a_drivers_last_line_of_that_level(
    home: Path, capsys: pytest.CaptureFixture[str], level: str, found: bool
) -> None:
    lines = [
        ("info", "spark-submit: spark-submit --name x"),
        (level, "[my sink|worker] my sink: no broker (sluiceway.driver)"),
        ("warning", "[my sink|worker] The driver died with exit code 1; Airflow starts it again in 4 s"),
        ("error", "Airflow's own"),
    ]
    attempt(home, 1, "".join(json.dumps({"timestamp": "T", "level": each, "event": text}) + "\n" for each, text in lines))
    assert main(["logs", "my sink", "--home", str(home)]) == 0
    head = "The driver's last error: [my sink|worker] my sink: no broker (sluiceway.driver)"
    assert (head in out(capsys)) is found


@pytest.mark.parametrize("application", ["small", None])
def test_the_log_of_a_connector_that_shares_an_application_leads_to_that_of_the_application(
    home: Path, api: PretendClient, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, application: str | None
) -> None:
    monkeypatch.setattr("sluiceway.stack.addresses.running_rest", lambda _home: "http://s")
    api.answer_application = lambda _name: {"application": application}  # type: ignore[method-assign]
    attempt(home, 1, "a driver runs\n")
    attempt(home, 1, "of the application\n", dag="application_x7Esmall")
    hint = "my sink runs in an application with others. 'sluiceway logs application~small' shows its driver and tasks.\n\n"
    for arguments, expected in (
        (["my sink"], f"{hint if application else ''}a driver runs\n"),
        (["my sink", "--raw"], "a driver runs\n"),
        (["application~small", "--raw"], "of the application\n"),
        (["rest", "-n", "1"], "three\n"),
    ):
        assert main(["logs", *arguments, "--home", str(home)]) == 0
        assert capsys.readouterr().out == expected
    api.failures = {"application": RestError(401, "no")}
    assert main(["logs", "my sink", "--home", str(home)]) == 0
    assert capsys.readouterr().out == "a driver runs\n"


def test_a_name_without_a_log_is_told_what_there_is(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["logs", "nope", "--home", str(home)]) == exit_codes.NOT_FOUND
    assert "Processes with a log: kafka, rest" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            '{"timestamp":"T","level":"error","event":"broke","error_detail":"x","task_id":"run"}',
            "[T] ERROR broke error_detail=x",
        ),
        ("plain", "plain"),
        ('{"broken', '{"broken'),
        ('{"no":"event"}', '{"no":"event"}'),
        ("[1]", "[1]"),
    ],
)
def test_airflows_lines_are_made_readable_and_others_are_left(line: str, expected: str) -> None:
    assert readable(line) == expected


@pytest.mark.parametrize(("name", "meant"), [("my snk", "my sink"), ("kafak", "kafka"), ("zzz", None)])
def test_a_name_without_a_log_is_answered_with_the_one_that_is_alike(
    home: Path, capsys: pytest.CaptureFixture[str], name: str, meant: str | None
) -> None:
    attempt(home, 1, "a\n")
    assert main(["logs", name, "--home", str(home)]) != 0
    error = capsys.readouterr().err
    assert f"No log of '{name}'" in error
    assert (f"Did you mean {meant}?" in error) if meant else ("Did you mean" not in error)


def test_what_is_added_is_followed_also_into_a_new_attempt_and_a_file_begun_anew(home: Path) -> None:
    first = attempt(home, 1, "a\n", when=1)
    find = finder(home, "my sink", "my_x20sink")
    happenings: Iterator[object] = iter(
        [
            lambda: first.open("a").write("b\nhalf"),
            lambda: first.open("a").write(" whole\n"),
            lambda: attempt(home, 2, "c\n", when=2**31),
            lambda: attempt(home, 2, "", when=2**31),
            lambda: attempt(home, 2, "d\n", when=2**31),
        ]
    )

    class EndError(Exception):
        pass

    def pause(_seconds: float) -> None:
        happening = next(happenings, None)
        if happening is None:
            raise EndError
        happening()  # type: ignore[operator]

    _, read = last_lines(first, 10)
    seen: list[str] = []
    with contextlib.suppress(EndError):
        seen.extend(line for line in follow(find, first, read, pause=pause))
    assert seen == ["b", "half whole", "c", "d"]
