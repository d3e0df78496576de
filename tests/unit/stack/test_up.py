"""The commands ``sluiceway ps`` and ``sluiceway down`` for a stack that does not run."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

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


def test_stacks_that_start_at_the_same_time_get_different_ports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with socket.create_server(("127.0.0.1", 0)) as rest, socket.create_server(("127.0.0.1", 0)) as airflow:
        usual = {"rest": rest.getsockname()[1], "api": airflow.getsockname()[1]}
    monkeypatch.setattr(up, "DEFAULT_REST_PORT", usual["rest"])
    monkeypatch.setattr(up, "PREFERRED_PORT", usual["api"])
    said: list[str] = []
    first, second = up.Stack(tmp_path / "first"), up.Stack(tmp_path / "second")
    ports = first._ports(None, None, up._Clock(said.append))
    assert ports.items() >= usual.items()
    assert said == []
    others = second._ports(None, None, up._Clock(said.append))
    assert not set(others.values()) & set(ports.values()), "the servers of the first do not listen yet"
    assert [line.partition("] ")[2] for line in said] == [
        f"Port {usual['rest']} is in use; the REST API uses {others['rest']}",
        f"Port {usual['api']} is in use; Airflow uses {others['api']}",
    ]
    first.release_ports()
    assert second._ports(None, None, up._Clock(said.append)).items() >= usual.items(), "the first did not start"
