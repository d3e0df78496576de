"""Starting and stopping the stack, also after a crash."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import threading
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from sluiceway.stack import leftovers, up
from sluiceway.stack.airflow import COMPONENTS, airflow_process
from support.eventually import eventually
from support.stack import START, RunningStack

pytestmark = pytest.mark.airflow

SOURCE, SINK = "kept-source", "kept-sink"

#: Default timeout of Python's sqlite3 for a lock, in seconds.
SQLITE_PATIENCE = 5


@pytest.fixture(scope="module")
def files(stack: RunningStack, folder: Path) -> tuple[Path, Path]:
    source, copy = folder / "kept.txt", folder / "kept.copy"
    source.write_text("before\n")
    stack.connect.create(SOURCE, {"connector.class": "FileStreamSource", "file": str(source), "topic": "kept"})
    stack.connect.create(SINK, {"connector.class": "FileStreamSink", "file": str(copy), "topics": "kept"})
    _await_copy(source, copy)
    return source, copy


def _await_copy(source: Path, copy: Path) -> None:
    eventually(lambda: copy.exists() and copy.read_text() == source.read_text(), what="the copy")


def _family(stack: RunningStack) -> list[psutil.Process]:
    """Return every process of the stack: those in the components' sessions, and drivers, which have sessions of their own."""
    components = [airflow_process(component, stack.home).status().pid for component in COMPONENTS]
    members = [process for process in psutil.process_iter() if _session(process) in components]
    return members + leftovers.marked(stack.home)


def _session(process: psutil.Process) -> int:
    try:
        return os.getsid(process.pid)
    except OSError:
        return -1


def _alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    return [each for each in processes if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]


def test_other_users_and_machines_reach_no_port_and_no_file(stack: RunningStack, files: tuple[Path, Path]) -> None:
    listening = {
        connection.laddr.ip
        for process in _family(stack)
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    }
    assert listening <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}
    assert stat.S_IMODE(stack.home.stat().st_mode) == 0o700
    dags = stack.home / "airflow" / "dags"  # its files are of users, such as other tests
    made = [path for path in stack.home.rglob("*") if path.is_file() and path.suffix != ".lock" and dags not in path.parents]
    assert {path.name: oct(path.stat().st_mode) for path in made if path.stat().st_mode & 0o077} == {}
    run = next(stack.home.glob("airflow/logs/dag_id=*/run_id=*"))
    address = f"/dags/{SOURCE}/dagRuns/{run.name.removeprefix('run_id=')}/taskInstances/run/logs/1"
    assert "Could not read served logs" not in str(stack.airflow.get(address).raise_for_status().json())


def test_airflow_reports_no_import_error_of_a_plugin(stack: RunningStack) -> None:
    assert stack.airflow.get("/plugins/importErrors").raise_for_status().json()["import_errors"] == []


def test_down_stops_every_process_and_up_continues_at_the_same_offsets(stack: RunningStack, files: tuple[Path, Path]) -> None:
    source, copy = files
    family = _family(stack)
    assert any("driver_app.py" in " ".join(process.cmdline()) for process in family)
    up.down(home=stack.home)
    assert _alive(family) == []
    lines: list[str] = []
    assert up.ps(lines.append, home=stack.home) == 1
    assert all("not running" in line for line in lines[1:])
    with source.open("a") as file:
        file.write("while it was down\n")
    before = stack.addresses
    assert stack.up() == before
    _await_copy(source, copy)


@pytest.mark.long
def test_up_takes_over_from_an_airflow_that_was_killed(stack: RunningStack, files: tuple[Path, Path]) -> None:
    source, copy = files
    parents = [airflow_process(component, stack.home).status().pid for component in COMPONENTS]
    rest = {process.pid for process in leftovers.marked(stack.home) if "rest" in process.cmdline()}
    orphans = [process for process in _family(stack) if process.pid not in {*parents, *rest}]
    for pid in parents:
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: not any(airflow_process(component, stack.home).is_running() for component in COMPONENTS))
    assert _alive(orphans), "the scheduler's workers outlive it"
    with source.open("a") as file:
        file.write("while it was dead\n")
    stack.up()
    for name in (SOURCE, SINK):
        stack.await_states(name, "RUNNING", "RUNNING")
    _await_copy(source, copy)
    assert _alive(orphans) == []
    for name in (SOURCE, SINK):
        stack.connect.delete(name)


@pytest.mark.long
def test_up_on_a_running_stack_changes_nothing(stack: RunningStack) -> None:
    pids = [airflow_process(component, stack.home).status().pid for component in COMPONENTS]
    assert stack.up() == stack.addresses
    assert [airflow_process(component, stack.home).status().pid for component in COMPONENTS] == pids
    assert up.ps(lambda _line: None, home=stack.home) == 0


def test_a_database_lock_of_some_seconds_fails_no_request(stack: RunningStack) -> None:
    answers: list[int] = []
    asked = threading.Thread(target=_ask_for_a_variable, args=(stack, answers))
    with closing(sqlite3.connect(stack.home / "airflow" / "airflow.db", isolation_level=None, timeout=30)) as database:
        database.execute("BEGIN IMMEDIATE")
        asked.start()
        asked.join(SQLITE_PATIENCE + 2)
        assert answers == [], "the request waits for the lock"
        database.execute("ROLLBACK")
    asked.join(START)
    assert answers == [201]


def _ask_for_a_variable(stack: RunningStack, answers: list[int]) -> None:
    answers.append(stack.airflow.post("/variables", json={"key": "patient", "value": "1"}).status_code)
