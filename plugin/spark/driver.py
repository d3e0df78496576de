"""A driver: the process that hosts one or several connectors and runs their tasks on Spark (Connect's worker process)."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from collections.abc import Callable
from pathlib import Path

from sluiceway.spark.runner import ConnectorRunner, Outcome
from sluiceway.storage.interfaces import ConfigStore

log = logging.getLogger(__name__)

RunnerFactory = Callable[[str], ConnectorRunner]


def local_worker_id() -> str:
    """Return this process's id for status records: host and process number, one for each driver."""
    return f"{socket.gethostname()}:{os.getpid()}"


class Driver:
    """Keeps one runner for each connector that it hosts, and stops them all when told.

    ``only`` names the connectors to host; None hosts every connector in the store (standalone mode), those that are
    created later included.
    """

    def __init__(self, config_store: ConfigStore, runner: RunnerFactory, *, only: list[str] | None = None) -> None:
        self._config_store = config_store
        self._new_runner = runner
        self._only = only
        self._runners: dict[str, ConnectorRunner] = {}
        self._wake = threading.Event()
        self._stop_reason: str | None = None
        self._told = False
        config_store.on_change(self._changed)

    def stop(self, reason: str) -> None:
        """Drain everything and return from ``run``; callable from any thread and from a signal handler."""
        if self._stop_reason is None:
            self._stop_reason = reason
        self._wake.set()

    def run(self) -> list[Outcome]:
        """Host connectors until they all ended (or, hosting all, until ``stop``); return how each one ended."""
        outcomes: list[Outcome] = []
        for name in self._only or ():
            self._add(name)
        while True:
            self._wake.clear()
            if self._stop_reason:
                self._tell_to_leave()
            elif self._only is None:
                for name in set(self._config_store.snapshot().names()) - self._runners.keys():
                    self._add(name)
            outcomes += self._reap()
            if not self._runners and (self._only is not None or self._stop_reason):
                return outcomes
            self._wake.wait(0.2)

    def _tell_to_leave(self) -> None:
        if not self._told:
            self._told = True
            log.info("Stopping: %s", self._stop_reason)
            for runner in self._runners.values():
                runner.leave()

    def _reap(self) -> list[Outcome]:
        ended = [name for name, runner in self._runners.items() if not runner.is_alive()]
        return [self._runners.pop(name).outcome or Outcome.FAILED for name in ended]

    def _add(self, name: str) -> None:
        runner = self._new_runner(name)
        self._runners[name] = runner
        runner.start()

    def _changed(self, kind: str, connector: str) -> None:
        if kind == "restart":
            for request in self._config_store.take_restart_requests():
                if runner := self._runners.get(request.connector):
                    runner.restart(request)
        elif runner := self._runners.get(connector):
            runner.notify()
        self._wake.set()


def stop_on_signals(driver: Driver) -> None:
    """Drain on SIGTERM and SIGINT. Call from the main thread."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _frame: driver.stop(f"received {signal.Signals(received).name}"))


def stop_with_parent(driver: Driver, parent: int | None) -> None:
    """Drain when the process ``parent`` (the Airflow task that submitted this driver) is gone.

    Spark's JVM is this process's own parent; once that is gone the tasks are too, and nobody would end this process.
    """
    jvm = os.getppid()
    started = _start_time(parent) if parent else None

    def watch() -> None:
        pause = threading.Event()
        while not pause.wait(0.5):
            if os.getppid() != jvm:
                driver.stop("Spark's JVM is gone")
                return
            if parent and _start_time(parent) != started:
                driver.stop(f"the process that submitted this driver ({parent}) is gone")
                return

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()


def _start_time(process: int) -> str | None:
    """Return a process's start time in clock ticks, which tells a recycled process number; None if there is no such process."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] == "Z" else fields[19]
