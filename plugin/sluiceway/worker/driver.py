"""A driver: the process that hosts one or several connectors and runs their tasks on Spark (Connect's worker process)."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable

from sluiceway.storage.interfaces import ConfigBackingStore
from sluiceway.storage.model import ConnectorEntry
from sluiceway.worker.connector_runner import ConnectorRunner, Outcome

log = logging.getLogger(__name__)

_AGAIN_SECONDS = 10.0  # before a connector whose runner failed is tried again

RunnerFactory = Callable[[str], ConnectorRunner]


def local_worker_id() -> str:
    """Return this process's id for status records: host and process number, one for each driver."""
    return f"{socket.gethostname()}:{os.getpid()}"


class Driver:
    """Keeps one runner for each connector that it hosts, and stops them all when told.

    ``only`` names the connectors to host; None hosts every connector in the store (standalone mode) that ``hosts`` says yes
    to, those that are created later included.
    """

    def __init__(
        self,
        config_store: ConfigBackingStore,
        runner: RunnerFactory,
        *,
        only: list[str] | None = None,
        hosts: Callable[[ConnectorEntry], bool] = lambda entry: True,
    ) -> None:
        self._config_store = config_store
        self._new_runner = runner
        self._only = only
        self._hosts = hosts
        self._runners: dict[str, ConnectorRunner] = {}
        self._wake = threading.Event()
        self._stop_reason: str | None = None
        self._told = False
        self._not_before: dict[str, float] = {}
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
                self._add_new()
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

    def _add_new(self) -> None:
        """Host every connector that there is; one whose runner failed, only after a while. One that is for others now, leaves."""
        state = self._config_store.snapshot()
        entries = {name: entry for name in state.names() if (entry := state.entry(name)) is not None}
        for name, entry in entries.items():
            if name in self._runners:
                if not self._hosts(entry):
                    self._runners[name].leave()
            elif self._hosts(entry) and time.monotonic() >= self._not_before.get(name, 0.0):
                self._add(name)

    def _reap(self) -> list[Outcome]:
        ended = [name for name, runner in self._runners.items() if not runner.is_alive()]
        outcomes = {name: self._runners.pop(name).outcome or Outcome.FAILED for name in ended}
        failed = (name for name, outcome in outcomes.items() if outcome is not Outcome.DONE)
        self._not_before.update(dict.fromkeys(failed, time.monotonic() + _AGAIN_SECONDS))
        return list(outcomes.values())

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
