"""Airflow with PostgreSQL and LocalExecutor: each process killed in turn, two API servers, runs restarted by REST.

``sluiceway up`` restarts what Airflow does not restart itself, as systemd or Compose would.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import psutil
import pytest

from sluiceway.stack.airflow import airflow_process
from sluiceway.stack.ports import free_port
from sluiceway.stack.process import BackgroundProcess
from support.airflow_home import isolate_airflow
from support.eventually import eventually
from support.faults.airflow_job import AT_LEAST_ONCE, Job, await_exit
from support.faults.rows import NewRow
from support.stack import START, RunningStack

isolate_airflow()
pytestmark = [pytest.mark.airflow, pytest.mark.kafka, pytest.mark.timeout(900)]

_DEAD_ONCE = """
from airflow.sdk import DAG  # an Airflow DAG
from sluiceway.operators import SourceConnectorOperator

with DAG({dag!r}, schedule=None, is_paused_upon_creation=False):
    SourceConnectorOperator(task_id="run", config={config!r}, retries=0)
"""


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    running = RunningStack(tmp_path_factory.mktemp("stack"), postgres=True, settings={"API__WORKERS": "2"})
    try:
        yield running
    finally:
        running.close()


def _component(name: str) -> Callable[[Job], psutil.Process]:
    return lambda job: psutil.Process(airflow_process(name, job.stack.home).status().pid)


def _ancestor(generation: int) -> Callable[[Job], psutil.Process]:
    return lambda job: job.driver().parents()[generation]


#: A function that finds each process, and True if the driver survives its end.
_VICTIMS: Mapping[str, tuple[Callable[[Job], psutil.Process], bool]] = {
    "task runner": (_ancestor(1), False),
    "Airflow worker": (_ancestor(2), False),
    "scheduler": (_component("scheduler"), False),
    "API server": (_component("api-server"), True),
    "triggerer": (_component("triggerer"), True),
    "driver": (lambda job: job.driver(), False),
}


@pytest.mark.parametrize("victim", _VICTIMS)
def test_the_connector_recovers_from_the_kill_of_any_process(job: Job, row: NewRow, victim: str) -> None:
    find, outlived = _VICTIMS[victim]
    made = row(f"{victim} killed (-9)", f"RUNNING by itself; {AT_LEAST_ONCE}, never two drivers")
    first, process = job.driver(), find(job)
    process.kill()
    killed = time.monotonic()
    await_exit(process)
    with ThreadPoolExecutor(1) as supervisor:
        started = supervisor.submit(job.stack.up)
        if not outlived:
            await_exit(first)
        seen = eventually(job.steady, what=f"a driver that runs, after {victim} was killed")
        job.more()
        made.recovered(time.monotonic() - killed)
        started.result()
    assert (seen == first) is outlived
    job.judge(made, faults=0 if outlived else 1)


# The pause sync, in the four processes of two API servers.


def test_one_of_four_processes_runs_the_pause_sync_and_another_takes_over(job: Job, row: NewRow) -> None:
    made = row("leading API server process killed (-9), of 2 x 2", "another takes over within seconds; 0 lost, 0 duplicated")
    stack = job.stack
    with _second_api_server(stack):
        eventually(lambda: len(_servers(stack)) >= 4, what="four API server processes")
        leader = _leader(stack)
        leader.kill()
        killed = time.monotonic()
        successor = eventually(lambda: _leader_or_none(stack), what="another leader")
        made.recovered(time.monotonic() - killed)
        assert successor != leader
        before = _toggles(stack, job.name)
        job.stack.set_paused(job.name, True)
        stack.await_states(job.name, "PAUSED", "PAUSED")
        stack.connect.resume(job.name)
        eventually(lambda: stack.is_paused(job.name) is False, what="the DAG unpaused")
        job.running()
        _press(stack, job.name, "pause")
        eventually(lambda: stack.is_paused(job.name), what="the DAG paused")
        toggles = _toggles(stack, job.name)[len(before) :]
    stack.up()
    # Each toggle appears once in the audit log: the user's, logged by Airflow, and the REST request's, by the only pause sync.
    assert toggles == [("patch_dag", "true"), ("unpause", "false"), ("pause", "true")]
    stack.connect.resume(job.name)
    job.running()
    job.judge(made, faults=0)


def test_a_restart_by_rest_starts_failed_connectors_and_tasks(new_job: Job, row: NewRow) -> None:
    made = row("Airflow task killed (-9), no retries, restarted by REST", f"RUNNING again; {AT_LEAST_ONCE}")
    job, stack = new_job, new_job.stack
    file = stack.home / "airflow" / "dags" / f"{job.name}.py"
    file.write_text(_DEAD_ONCE.format(dag=job.name, config=job.config))
    try:
        eventually(lambda: stack.dag(job.name), what="the DAG")
        stack.airflow.post(f"/dags/{job.name}/dagRuns", json={"logical_date": None}).raise_for_status()
        job.running()
        job.more()
        _ancestor(1)(job).kill()
        eventually(lambda: stack.task_states(job.name) == ["failed"], what="the task failed")
        asked = time.monotonic()
        stack.connect.restart(job.name, tasks=True)
        eventually(job.steady, what="another driver")
        job.more()
        made.recovered(time.monotonic() - asked)
        job.judge(made)
    finally:
        file.unlink(missing_ok=True)


class _second_api_server:  # noqa: N801 (reads as a statement)
    """A second API server while the context lasts."""

    def __init__(self, stack: RunningStack) -> None:
        port = free_port()
        environment = {**stack.airflow_environment(), "AIRFLOW__API__PORT": str(port)}
        self._process = BackgroundProcess(
            "airflow-api-server-2", [sys.executable, "-m", "airflow", "api-server"], stack.home, env=environment
        )
        self._url = f"http://127.0.0.1:{port}/api/v2/version"

    def __enter__(self) -> None:
        self._process.start()
        self._process.wait_until(self._answers, START)

    def __exit__(self, *_: object) -> None:
        self._process.stop()

    def _answers(self) -> bool:
        try:
            return httpx.get(self._url, timeout=5).is_success
        except httpx.HTTPError:
            return False


def _servers(stack: RunningStack) -> set[int]:
    """Return the process ids of all API servers' worker processes."""
    found = set()
    for name in ("airflow-api-server", "airflow-api-server-2"):
        pid = BackgroundProcess(name, [], stack.home).status().pid
        if pid is not None:
            found |= {child.pid for child in psutil.Process(pid).children(recursive=True) if _is_server(child)}
    return found


def _is_server(process: psutil.Process) -> bool:
    return any(each.raddr and each.raddr.port for each in process.net_connections("tcp"))


def _leader(stack: RunningStack) -> psutil.Process:
    return eventually(lambda: _leader_or_none(stack), what="a leader")


def _leader_or_none(stack: RunningStack) -> psutil.Process | None:
    """Return the process that holds the lock of the pause sync: the client of that connection to PostgreSQL."""
    query = "SELECT client_port FROM pg_stat_activity JOIN pg_locks USING (pid) WHERE locktype = 'advisory' AND granted"
    ports = {port for (port,) in stack.database.execute(query)}
    assert len(ports) <= 1, "two lead"
    for connection in psutil.net_connections("tcp"):
        if connection.laddr and connection.laddr.port in ports and connection.pid and connection.pid != os.getpid():
            return psutil.Process(connection.pid)
    return None


def _press(stack: RunningStack, name: str, action: str) -> None:
    """Send the request of a button in Airflow's UI."""
    httpx.put(f"{stack.addresses.airflow}/sluiceway/connectors/{name}/{action}", timeout=30).raise_for_status()


def _toggles(stack: RunningStack, dag_id: str) -> list[tuple[str, str]]:
    """Return the audit log's events and values for a DAG's paused flag, oldest first."""
    answer = stack.airflow.get("/eventLogs", params={"dag_id": dag_id, "order_by": "id", "limit": 100}).json()
    kinds = ("patch_dag", "pause", "unpause")
    return [(each["event"], _value(each)) for each in answer["event_logs"] if each["event"] in kinds]


def _value(entry: Mapping[str, Any]) -> str:
    return "true" if '"is_paused": true' in str(entry["extra"]) else "false"
