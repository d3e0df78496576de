"""One real stack for the tests under tests/airflow: broker, REST API and Airflow, as ``sluiceway up`` starts them."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx
import psutil

from sluiceway.provider.driver.processes import is_python_of
from sluiceway.rest.client import ConnectClient, RestError
from sluiceway.stack import leftovers
from sluiceway.stack.addresses import Addresses
from sluiceway.stack.airflow import COMPONENTS, LocalAirflow, airflow_process
from sluiceway.stack.process import BackgroundProcess
from sluiceway.stack.up import down, up
from support import explain
from support.driver import write_properties
from support.eventually import LIMIT, eventually
from support.guard import Guard
from support.postgres import PostgresServer

#: Time limit in seconds for the start of a Spark application and its DAG on a small busy machine.
START = 120.0


#: Settings of Airflow by which a task counts as dead 20 s after its last heartbeat, which comes each second, instead of a minute.
SOON_DEAD = {
    "SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "20",
    "SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "5",
}


class RunningStack:
    """A running stack, its two REST APIs and its processes.

    Args:
        home: the stack's folder.
        postgres: True for a PostgreSQL of the stack as Airflow's database, instead of SQLite.
        settings: settings of Airflow, as ``SECTION__OPTION``.
        worker: properties of the worker's file, besides the stack's own.
        login: user and password of the REST API on its own port.
        running: the addresses of a stack that runs already; it is neither started nor ended here.
    """

    def __init__(
        self,
        home: Path,
        *,
        postgres: bool = False,
        settings: Mapping[str, str] | None = None,
        worker: Mapping[str, str] | None = None,
        login: tuple[str, str] | None = None,
        running: Addresses | None = None,
    ) -> None:
        self.home = home
        self._database = PostgresServer() if postgres else None
        self.settings = {**(self._database.airflow() if self._database else {}), **(settings or {})}
        self.worker = dict(worker or {})
        self._guard = None if running else Guard(end, home)
        try:
            if self._database is not None:
                self._database.start()
            self.addresses = running or self.up()
        except BaseException:
            self._end()
            raise
        explain.watch(self.log_ends)
        self.connect = ConnectClient(self.addresses.rest, login=login)
        self.mounted = ConnectClient(f"{self.addresses.airflow}/sluiceway")
        hooks: Mapping[str, list[Callable[[httpx.Response], None]]] = {"response": [self._explain]}
        self.airflow = httpx.Client(base_url=f"{self.addresses.airflow}/api/v2", timeout=LIMIT, event_hooks=hooks)

    @property
    def database(self) -> PostgresServer:
        """Airflow's PostgreSQL database."""
        assert self._database is not None
        return self._database

    def up(self) -> Addresses:
        file = write_properties(self.home / "given.properties", self.worker) if self.worker else None
        self.addresses = up(file, _say, home=self.home, airflow=self.settings)
        return self.addresses

    def _explain(self, response: httpx.Response) -> None:
        """Print the API server's log after a server error, because the response has no cause."""
        if response.is_server_error:
            log = (self.home / "airflow-api-server.log").read_text(errors="replace")
            print(f"{response.request.method} {response.url}: {response.read()!r}", log[-6000:], sep="\n", file=sys.stderr)

    def log_ends(self) -> str:
        """Return the ends of the newest task logs, which have the lines of the drivers too."""
        logs = sorted((self.home / "airflow" / "logs").rglob("attempt=*.log"), key=lambda log: log.stat().st_mtime)[-3:]
        return "\n".join(f"{log}:\n" + "\n".join(log.read_text(errors="replace").splitlines()[-20:]) for log in logs)

    def processes(self) -> list[psutil.Process]:
        """Return every process of the stack: those in the components' sessions, and drivers, which have sessions of their own."""
        components = [airflow_process(component, self.home).status().pid for component in COMPONENTS]
        members = [process for process in psutil.process_iter() if _session(process) in components]
        return members + leftovers.marked(self.home)

    def close(self) -> None:
        """Stop the stack, and check that it leaves no process."""
        for client in (self.connect, self.mounted, self.airflow):
            client.close()
        left = []
        if self._guard is not None:
            family = self.processes()
            down(_say, home=self.home)
            left = alive(family)
        self._end()
        assert left == [], "processes that outlive `sluiceway down`"

    def _end(self) -> None:
        if self._guard is not None:
            self._guard.close()
        if self._database is not None:
            self._database.close()

    def airflow_environment(self) -> dict[str, str]:
        """Return the environment variables for commands of this stack's Airflow."""
        home = self.home / "airflow"
        return LocalAirflow(home, self.home, Path(self.addresses.worker_file), self.addresses.ports, self.settings).environment()

    def await_class_archive(self) -> None:
        """Wait until the JVM's class data archive, which speeds up drivers, is written."""
        process = BackgroundProcess("class-archive", [], self.home)
        eventually(lambda: not process.is_running(), within=600, what="the class archive")

    # Connectors.

    def states(self, name: str) -> tuple[str, ...]:
        """Return the states of the connector and its tasks; empty if the connector does not exist."""
        try:
            status = self.connect.status(name)
        except RestError:
            return ()
        return (status["connector"]["state"], *(task["state"] for task in status["tasks"]))

    def worker_id(self, name: str) -> str:
        return str(self.connect.status(name)["connector"]["worker_id"])

    def await_states(self, name: str, *states: str, within: float = LIMIT) -> None:
        eventually(lambda: self.states(name) == states or None, within=within, what=f"{name} {states}, is {self.states(name)}")

    def drivers(self, name: str) -> list[psutil.Process]:
        """Return the connector's Python driver processes, of which there should be one at most."""
        found = []
        for process in leftovers.marked(self.home):
            with contextlib.suppress(psutil.NoSuchProcess):
                if is_python_of(process, "driver_app.py") and name in process.cmdline():
                    found.append(process)
        return found

    def driver(self, name: str) -> psutil.Process | None:
        """Return the connector's Python driver process, None if there is none."""
        return next(iter(self.drivers(name)), None)

    def jvm(self, name: str) -> psutil.Process | None:
        driver = self.driver(name)
        return None if driver is None else driver.parent()

    # Airflow.

    def dag(self, dag_id: str) -> Mapping[str, Any] | None:
        answer = self.airflow.get(f"/dags/{dag_id}")
        return answer.json() if answer.status_code == 200 else None

    def is_paused(self, dag_id: str) -> bool | None:
        dag = self.dag(dag_id)
        return None if dag is None else bool(dag["is_paused"])

    def set_paused(self, dag_id: str, paused: bool) -> None:
        self.airflow.patch(f"/dags/{dag_id}", json={"is_paused": paused}).raise_for_status()

    def newest_run(self, dag_id: str) -> Mapping[str, Any]:
        """Return the DAG's newest run, as Airflow's REST API does."""
        answer = self.airflow.get(f"/dags/{dag_id}/dagRuns", params={"order_by": "-run_after", "limit": 1})
        run: Mapping[str, Any] = answer.json()["dag_runs"][0]
        return run

    def task_states(self, dag_id: str) -> list[str]:
        """Return the states of all task instances of a DAG, oldest run first."""
        answer = self.airflow.get(f"/dags/{dag_id}/dagRuns/~/taskInstances", params={"order_by": "run_after"})
        return [str(each["state"]) for each in answer.json().get("task_instances", ())]


def alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    return [each for each in processes if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]


def _session(process: psutil.Process) -> int:
    try:
        return os.getsid(process.pid)
    except OSError:
        return -1


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def end(home: str) -> None:
    """Stop a stack, from any process."""
    down(lambda line: None, home=Path(home))
