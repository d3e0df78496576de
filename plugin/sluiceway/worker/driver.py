"""Runs the connectors of one driver process, each in its own runner; the counterpart of Connect's worker process."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable

from sluiceway.storage.interfaces import ConfigBackingStore
from sluiceway.storage.model import ClusterState, ConnectorEntry
from sluiceway.worker.connector_runner import ConnectorRunner, RunnerOutcome

log = logging.getLogger(__name__)

_RETRY_SECONDS = 10.0  # before a connector whose runner failed gets a new runner
_POLL_SECONDS = 2.0  # for what nothing announces: a connector that may be tried again

RunnerFactory = Callable[[str], ConnectorRunner]


def local_worker_id() -> str:
    """Return this process's id for status records: host name and process id, unique to each driver."""
    return f"{socket.gethostname()}:{os.getpid()}"


class Driver:
    """Keeps one runner for each connector it hosts, until all have ended or ``stop`` is called.

    Args:
        config_store: names the connectors and their target states.
        runner: makes the runner of a connector.
        only: the connectors to host; None hosts every connector for which ``hosts`` is true, also those created later.
        hosts: whether this driver may host a connector, given its entry.
        is_free: whether no other driver is about to release a connector that this one is to host.
        place: called at each change, and a few times a second, to decide which connectors this driver hosts.
        ended: called with each runner that has ended.
    """

    def __init__(
        self,
        config_store: ConfigBackingStore,
        runner: RunnerFactory,
        *,
        only: list[str] | None = None,
        hosts: Callable[[ConnectorEntry], bool] = lambda entry: True,
        is_free: Callable[[ConnectorEntry], bool] = lambda entry: True,
        place: Callable[[ClusterState], None] = lambda state: None,
        ended: Callable[[ConnectorRunner], None] = lambda runner: None,
    ) -> None:
        self._config_store = config_store
        self._new_runner = runner
        self._only = only
        self._hosts = hosts
        self._is_free = is_free
        self._place = place
        self._ended = ended
        self._runners: dict[str, ConnectorRunner] = {}
        self._wake = threading.Event()
        self._stop_reason: str | None = None
        self._leaving_trace: str | None = None
        self._stopping = False
        self._not_before: dict[str, float] = {}
        config_store.on_change(self._changed)

    @property
    def stopping(self) -> bool:
        """Whether ``stop`` has been called."""
        return self._stop_reason is not None

    @property
    def hosted(self) -> list[str]:
        """The names of the connectors that have a runner here."""
        return list(self._runners)

    def notify(self) -> None:
        """Make ``run`` look at once at what it hosts, because ``hosts`` may have changed."""
        self._wake.set()

    def stop(self, reason: str, trace: str | None = None) -> None:
        """Drain all connectors and make ``run`` return. Callable from any thread and from a signal handler.

        ``trace`` is published with the statuses of the connectors and tasks, if people must know the reason.
        """
        if self._stop_reason is None:
            self._stop_reason, self._leaving_trace = reason, trace
        self._wake.set()

    def run(self) -> list[RunnerOutcome]:
        """Host connectors and return the outcome of each runner that ended.

        Returns once all connectors named in ``only`` have ended; without ``only``, after ``stop``.
        """
        outcomes: list[RunnerOutcome] = []
        for name in self._only or ():
            self._add(name)
        while True:
            self._wake.clear()
            if self._stop_reason:
                self._stop_runners()
            else:
                self._update_hosted()
            outcomes += self._reap()
            if not self._runners and (self._only is not None or self._stop_reason):
                return outcomes
            self._wake.wait(_POLL_SECONDS)

    def _stop_runners(self) -> None:
        if not self._stopping:
            self._stopping = True
            log.info("Stopping: %s", self._stop_reason)
            for runner in self._runners.values():
                runner.leave(self._leaving_trace)

    def _update_hosted(self) -> None:
        """Start a runner for each connector this driver hosts (failed ones after a back-off); stop those assigned elsewhere."""
        self._place(self._config_store.snapshot())
        state = self._config_store.snapshot()
        for name, runner in self._runners.items():
            if (entry := state.entry(name)) is not None and not self._hosts(entry):
                runner.leave()
        if self._only is not None:
            return
        for entry in state.connectors.values():
            if entry.config is None or entry.name in self._runners or not self._hosts(entry):
                continue
            if time.monotonic() >= self._not_before.get(entry.name, 0.0) and self._is_free(entry):
                self._add(entry.name)

    def _reap(self) -> list[RunnerOutcome]:
        ended = [name for name, runner in self._runners.items() if runner.outcome is not None or not runner.is_alive()]
        outcomes: list[RunnerOutcome] = []
        for name in ended:
            runner = self._runners.pop(name)
            runner.join()
            outcomes.append(runner.outcome or RunnerOutcome.FAILED)
            if outcomes[-1] is not RunnerOutcome.DONE and not runner.bounded:  # Airflow repeats a micro-batch
                self._not_before[name] = time.monotonic() + _RETRY_SECONDS
            self._ended(runner)
        return outcomes

    def _add(self, name: str) -> None:
        runner = self._new_runner(name)
        runner.on_end = self._wake.set
        self._runners[name] = runner
        runner.start()

    def _changed(self, kind: str, connector: str) -> None:
        if kind == "restart":
            for request in self._config_store.take_restart_requests():
                if runner := self._runners.get(request.connector):
                    runner.restart(request)
        elif runner := self._runners.get(connector):
            entry = self._config_store.snapshot().entry(connector)
            if entry is None or self._hosts(entry):
                runner.notify()
            else:
                runner.leave()  # before it starts the connector with the config that moves it
        self._wake.set()


def stop_on_signals(driver: Driver) -> None:
    """Drain on SIGTERM and SIGINT. Call from the main thread."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _frame: driver.stop(f"received {signal.Signals(received).name}"))
