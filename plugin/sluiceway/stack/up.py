"""Starts, stops and lists the local stack (``sluiceway up``, ``down``, ``ps``): broker, Airflow and REST API.

Files in the state folder identify its processes, so any later command finds them.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from sluiceway.config.properties import read_properties
from sluiceway.errors import ConnectError
from sluiceway.folders import file_lock, private_folder, state_home
from sluiceway.java_plugins.installed import installed_plugins
from sluiceway.stack import demo_shop, leftovers
from sluiceway.stack.addresses import REST, Addresses, record, recorded
from sluiceway.stack.airflow import COMPONENTS, HOST, MARKER_VARIABLE, PREFERRED_PORT, LocalAirflow, airflow_process
from sluiceway.stack.broker import EmbeddedBroker
from sluiceway.stack.ports import can_bind, free_port, preferred_port, release_port
from sluiceway.stack.process import BackgroundProcess, ProcessStatus
from sluiceway.stack.worker_file import (
    BOOTSTRAP,
    DEFAULT_REST_PORT,
    LISTENERS,
    Readable,
    needs_broker,
    rest_url,
    worker_properties,
    write_worker_file,
)

Progress = Callable[[str], None]

_BROKER_PORT = 9092  # as in Kafka's documentation and tools
_READY_SECONDS = 300.0  # Airflow starts in 30 s on an idle machine, in a few minutes on a small busy one
_PROGRESS_SECONDS = 5.0
_DRAIN_SECONDS = 20.0
_STOP_SECONDS = 15.0
_KILL_SECONDS = 2.0  # for processes that a kill does not harm


def up(
    worker_file: Path | None = None,
    progress: Progress = print,
    *,
    home: Path | None = None,
    airflow: Mapping[str, str] | None = None,
) -> Addresses:
    """Start the processes that do not run, wait until all are healthy, and return their addresses.

    Args:
        worker_file: the user's worker properties; if None, or if it names no brokers, the embedded broker is started.
        progress: called with each line of progress, such as a port in use that was replaced by a free one.
        home: the state folder.
        airflow: Airflow settings as ``SECTION__OPTION`` that override the stack's own.

    Raises ConnectError or MissingToolError; processes that run already keep running.
    """
    stack = Stack(_own(home or state_home()), airflow)
    with file_lock(stack.folder / "up.lock"):
        try:
            return stack.up(read_properties(worker_file) if worker_file else None, progress)
        finally:
            stack.release_ports()


def down(progress: Progress = print, *, home: Path | None = None) -> None:
    """End every process of the stack, the connectors' drivers first, so that they drain. Data is kept."""
    stack = Stack(home or state_home())
    with file_lock(stack.folder / "up.lock"):
        stack.down(progress)


def ps(progress: Progress = print, *, home: Path | None = None) -> int:
    """Print name, pid, state, start time and log of each process of the stack; return 1 if one does not run, else 0."""
    rows = Stack(home or state_home()).statuses()
    head = ("NAME", "PID", "STATE", "SINCE", "LOG")
    lines = [head, *(_row(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    for line in lines:
        progress("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    return 0 if all(row.running for row in rows) else 1


def _own(folder: Path) -> Path:
    """Return the state folder after closing it for other users: it holds logs, databases, and the brokers' data."""
    try:
        return private_folder(folder)
    except OSError as error:
        raise ConnectError(f"The state folder {folder} cannot be used: {error.strerror}. Set SLUICEWAY_HOME.") from error


class Stack:
    """The processes of one state folder. Any Python process can start, watch and end them."""

    def __init__(self, folder: Path, airflow: Mapping[str, str] | None = None) -> None:
        self.folder = folder.absolute()
        self._airflow_settings = dict(airflow or {})
        self._airflow_home = self.folder / "airflow"
        self._worker_file = self.folder / "worker.properties"
        self._broker = EmbeddedBroker(self.folder / "broker", preferred=_BROKER_PORT)
        self._claimed: list[int] = []

    def up(self, user: Mapping[str, str] | None, progress: Progress) -> Addresses:
        clock = _Clock(progress)
        before = recorded(self.folder)
        ports = self._ports(user, before, clock)
        airflow = LocalAirflow(self._airflow_home, self.folder, self._worker_file, ports, self._airflow_settings)
        with ThreadPoolExecutor(2) as pool:
            migrated: Future[bool] = pool.submit(airflow.migrate)
            bootstrap = None
            if needs_broker(user):
                clock.say("Starting the Kafka broker")
                bootstrap = self._broker.start(clock.say)
                clock.say(f"The broker answers on {bootstrap}")
            readable, listeners = Readable.of(self.folder), f"http://{HOST}:{ports['rest']}"
            readable.make()
            plugins = installed_plugins(self.folder)
            plugins.mkdir(exist_ok=True)
            properties = worker_properties(user, bootstrap=bootstrap, listeners=listeners, readable=readable, plugins=plugins)
            write_worker_file(self._worker_file, properties)
            rest = self._rest_process()
            rest.start()
            with clock.repeating("Creating Airflow's database"):
                migrated.result()
        addresses = Addresses(rest_url(properties), airflow.url, properties[BOOTSTRAP], str(self._worker_file), ports)
        record(self.folder, addresses)
        since = airflow.start()
        clock.say("Started Airflow's components and the REST API; waiting until all are healthy")
        rest.wait_until(lambda: rest.listens_on(ports["rest"]), _READY_SECONDS, what="answering")
        self._await_airflow(airflow, since, clock)
        self._make_class_archive()
        clock.say(f"Everything is healthy. REST API {addresses.rest}, Airflow {addresses.airflow}, Kafka {addresses.bootstrap}")
        return addresses

    def down(self, progress: Progress) -> None:
        clock = _Clock(progress)
        scheduler = airflow_process("scheduler", self.folder)
        running = [row.name for row in self.statuses() if row.running]
        if not running and not leftovers.marked(self.folder):
            clock.say("Nothing runs")
            return
        with clock.repeating("Draining connectors"), ThreadPoolExecutor(8) as pool:
            # The scheduler first, because it would start drivers again. It waits for its tasks, and they for their drivers.
            pid = scheduler.status().pid
            stopping = pool.submit(scheduler.stop, _DRAIN_SECONDS + _STOP_SECONDS)
            # Beside it those that no task needs. A JVM that makes a class archive would write it before its end, and a triggerer
            # waits 10 s for the process of its triggers, which have no state.
            killed_soon = [self._class_archive(), airflow_process("triggerer", self.folder)]
            unneeded = [airflow_process("dag-processor", self.folder), self._rest_process(), demo_shop.writer(self.folder)]
            others = [pool.submit(process.stop, _KILL_SECONDS, may_be_killed=True) for process in killed_soon]
            others += [pool.submit(process.stop, _STOP_SECONDS) for process in unneeded]
            if killed := leftovers.drain_drivers(self.folder, _DRAIN_SECONDS, until=stopping.done, scheduler=pid):
                clock.say(f"Killed {killed} driver(s) that did not drain within {_DRAIN_SECONDS:g} s")
            stopping.result()
            # Its Kafka clients need up to 10 s to close after it has answered its last request.
            airflow_process("api-server", self.folder).stop(_KILL_SECONDS, may_be_killed=True)
            for each in others:
                each.result()
        leftovers.end_all(self.folder, _STOP_SECONDS)
        self._broker.stop()
        clock.say(f"Ended {', '.join(running) or 'remaining processes'}; data is kept in {self.folder}")

    def statuses(self) -> list[ProcessStatus]:
        """Return the state of each process; of the broker only if this stack has ever started it, of the demo's while it runs."""
        broker = BackgroundProcess("kafka", [], self._broker.state_dir)
        processes = [self._rest_process(), *(airflow_process(each, self.folder) for each in COMPONENTS)]
        demo = demo_shop.writer(self.folder)
        optional = [*([broker] if broker.log.exists() else []), *([demo] if demo.is_running() else [])]
        return [process.status() for process in [*optional, *processes]]

    def _rest_process(self) -> BackgroundProcess:
        command = [sys.executable, "-m", "sluiceway.cli.main", "rest", str(self._worker_file)]
        return BackgroundProcess(REST, command, self.folder, env={MARKER_VARIABLE: str(self.folder)})

    def _make_class_archive(self) -> None:
        """Make class archives in the background, so that drivers and the broker start faster. Ends at once if they exist."""
        self._class_archive().start()

    def _class_archive(self) -> BackgroundProcess:
        command = ["nice", "-n", "15", sys.executable, "-m", "sluiceway.stack.class_archives"]
        return BackgroundProcess("class-archive", command, self.folder, env={MARKER_VARIABLE: str(self.folder)})

    def _ports(self, user: Mapping[str, str] | None, before: Addresses | None, clock: _Clock) -> dict[str, int]:
        """Return each server's port: that of the running server, else the last one, else the default, else a free one."""
        last = dict(before.ports) if before else {}
        listener = (user or {}).get(LISTENERS, "").split(",")[0].rpartition(":")[2]
        usual = {"rest": int(listener) if listener.isdigit() else DEFAULT_REST_PORT, "api": PREFERRED_PORT}
        running = {
            "rest": self._rest_process().is_running(),
            "api": airflow_process("api-server", self.folder).is_running(),
            "worker-logs": airflow_process("scheduler", self.folder).is_running(),
            "trigger-logs": airflow_process("triggerer", self.folder).is_running(),
        }
        if not running["api"]:
            airflow_process("api-server", self.folder).stop(_STOP_SECONDS)  # workers of a killed API server hold its port
        ports: dict[str, int] = {}
        for name, runs in running.items():
            known = last.get(name)
            if known and runs:
                ports[name] = known
                continue
            wanted = known if known and can_bind(HOST, known) else usual.get(name)
            # Claimed, because the servers listen seconds later, and another stack may start meanwhile.
            ports[name] = preferred_port(wanted, HOST) if wanted else free_port(HOST)
            self._claimed.append(ports[name])
            if name in usual and ports[name] != wanted:
                clock.say(f"Port {wanted} is in use; {'Airflow' if name == 'api' else 'the REST API'} uses {ports[name]}")
        if before and last.get("api") != ports["api"]:
            self._end_airflow()  # its components still use the API server's former port
        return ports

    def release_ports(self) -> None:
        """Give up the claims to ports: the servers listen, or have not started."""
        while self._claimed:
            release_port(self._claimed.pop())

    def _end_airflow(self) -> None:
        for component in COMPONENTS:
            airflow_process(component, self.folder).stop(_STOP_SECONDS)

    def _await_airflow(self, airflow: LocalAirflow, since: float, clock: _Clock) -> None:
        deadline = time.monotonic() + _READY_SECONDS
        reported = time.monotonic()
        while waiting := airflow.unhealthy(since):
            for component in COMPONENTS:
                process = airflow.process(component)
                if not process.is_running():
                    raise ConnectError(
                        f"Airflow's {component} ended during its start. Last lines of {process.log}:\n{process.log_tail()}"
                    )
            if time.monotonic() > deadline:
                log = airflow.process(waiting[0]).log
                raise ConnectError(f"Airflow is not healthy after {_READY_SECONDS:g} s: {', '.join(waiting)}. See {log}.")
            if time.monotonic() - reported >= _PROGRESS_SECONDS:
                reported = time.monotonic()
                clock.say(f"  waiting for {', '.join(waiting)}")
            time.sleep(0.3)


class _Clock:
    """Prefixes each line of progress with the seconds since the start."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._start = time.monotonic()

    def say(self, line: str) -> None:
        self._progress(f"[{time.monotonic() - self._start:5.1f} s] {line}")

    @contextmanager
    def repeating(self, line: str) -> Iterator[None]:
        """Print the line every few seconds until the block ends."""
        ended = threading.Event()

        def repeat() -> None:
            while not ended.wait(_PROGRESS_SECONDS):
                self.say(f"  {line}")

        thread = threading.Thread(target=repeat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


def _row(status: ProcessStatus) -> tuple[str, str, str, str, str]:
    since = _age(status.started) if status.started else "-"
    return (status.name, str(status.pid or "-"), "running" if status.running else "not running", since, str(status.log))


def _age(started: datetime) -> str:
    return started.astimezone().strftime("%Y-%m-%d %H:%M:%S")
