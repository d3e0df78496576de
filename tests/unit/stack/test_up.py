"""The commands ``sluiceway ps`` and ``sluiceway down`` for a stack that does not run."""

from __future__ import annotations

from pathlib import Path

from sluiceway.stack import up


def test_ps_of_a_stack_that_was_never_started_lists_each_process_and_returns_1(tmp_path: Path) -> None:
    lines: list[str] = []
    assert up.ps(lines.append, home=tmp_path) == 1
    assert [line.split()[0] for line in lines] == [
        "NAME",
        "rest",
        "airflow-api-server",
        "airflow-scheduler",
        "airflow-dag-processor",
        "airflow-triggerer",
    ]
    assert all("not running" in line for line in lines[1:])


def test_down_of_a_stack_that_does_not_run_reports_it(tmp_path: Path) -> None:
    lines: list[str] = []
    up.down(lines.append, home=tmp_path)
    assert [line.endswith("Nothing runs") for line in lines] == [True]
