"""Starting and stopping the stack, also after a crash."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import threading
from contextlib import closing

import psutil
import pytest

from sluiceway.stack import leftovers, up
from sluiceway.stack.airflow import COMPONENTS, airflow_process
from support.eventually import eventually
from support.main_job import SINK, SOURCE, MainJob
from support.stack import START, RunningStack, alive

pytestmark = pytest.mark.airflow

#: Default timeout of Python's sqlite3 for a lock, in seconds.
SQLITE_PATIENCE = 5


def test_other_users_and_machines_reach_no_port_and_no_file(running: MainJob) -> None:
    stack = running.stack
    listening = {
        connection.laddr.ip
        for process in stack.processes()
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    }
    assert listening <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}
    assert stat.S_IMODE(stack.home.stat().st_mode) == 0o700
    dags = stack.home / "airflow" / "dags"  # its files are of users, such as other tests
    made = [path for path in stack.home.rglob("*") if path.is_file() and path.suffix != ".lock" and dags not in path.parents]
    assert {path.name: oct(path.stat().st_mode) for path in made if path.stat().st_mode & 0o077} == {}
    run = f"/dags/{SOURCE}/dagRuns/{stack.newest_run(SOURCE)['dag_run_id']}/taskInstances/run"
    tries = stack.airflow.get(run).raise_for_status().json()["try_number"]
    assert "Could not read served logs" not in str(stack.airflow.get(f"{run}/logs/{tries}").raise_for_status().json())


def test_airflow_reports_no_import_error_of_a_plugin(stack: RunningStack) -> None:
    assert stack.airflow.get("/plugins/importErrors").raise_for_status().json()["import_errors"] == []


@pytest.mark.long  # the end of each stack of tests is as strict about processes
def test_down_stops_every_process_and_up_continues_at_the_same_offsets(running: MainJob) -> None:
    stack = running.stack
    family = stack.processes()
    assert any("driver_app.py" in " ".join(process.cmdline()) for process in family)
    up.down(home=stack.home)
    assert alive(family) == []
    lines: list[str] = []
    assert up.ps(lines.append, home=stack.home) == 1
    assert all("not running" in line for line in lines[1:])
    copied = running.lines()
    added = running.write(1)
    before = stack.addresses
    assert stack.up() == before
    eventually(lambda: running.lines()[len(copied) :] == added, what="the line that was written meanwhile, and no other one")
    assert running.lines()[: len(copied)] == copied


@pytest.mark.long
def test_up_takes_over_from_an_airflow_that_was_killed(running: MainJob) -> None:
    stack = running.stack
    parents = [airflow_process(component, stack.home).status().pid for component in COMPONENTS]
    rest = {process.pid for process in leftovers.marked(stack.home) if "rest" in process.cmdline()}
    orphans = [process for process in stack.processes() if process.pid not in {*parents, *rest}]
    for pid in parents:
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: not any(airflow_process(component, stack.home).is_running() for component in COMPONENTS))
    assert alive(orphans), "the scheduler's workers outlive it"
    running.write(1)
    stack.up()
    for name in (SOURCE, SINK):
        stack.await_states(name, "RUNNING", "RUNNING")
    running.await_all()
    assert alive(orphans) == []


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
