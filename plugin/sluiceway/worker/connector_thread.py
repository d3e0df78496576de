"""A Connector object on a thread of its own: one that never returns from a call holds up nobody else."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import TypeVar

from sluiceway.api import Connector
from sluiceway.config.variables import resolver, with_references
from sluiceway.config.worker import WorkerConfig
from sluiceway.discovery import connector_class
from sluiceway.herder.reconcile import desired_task_configs

log = logging.getLogger(__name__)

RELOAD = "config.action.reload"
_SOONEST_RELOAD_SECONDS = 1.0  # a provider that says 0 would have a connector do nothing but restart

T = TypeVar("T")


class HostedConnector:
    """One Connector object from ``start`` to ``stop``; it is called on its own thread only, one call after the other.

    The methods return at once. ``notify`` is called from any thread when there is news: a call has returned, or the
    connector asks for its tasks to be configured anew (``reconfigure``), or has reported an ``error``. ``good_until`` is when
    (in monotonic seconds) the values that config providers gave it cease to hold and ``config.action.reload`` wants a restart.
    """

    def __init__(self, name: str, config: Mapping[str, str], worker: WorkerConfig, notify: Callable[[], None]) -> None:
        self.reconfigure = False
        self.error: BaseException | None = None
        self.version: str | None = None
        self.good_until = float("inf")
        self._config = config
        self._worker = worker
        self._notify = notify
        self._connector: Connector | None = None
        self._calls: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        threading.Thread(target=self._run, name=f"connector-{name}-calls", daemon=True).start()

    # ConnectorContext, for the connector and its threads.

    def request_task_reconfiguration(self) -> None:
        self.reconfigure = True
        self._notify()

    def raise_error(self, error: BaseException) -> None:
        self.error = error
        self._notify()

    # For the runner.

    def start(self) -> Future[None]:
        """Make the object and start it. The future holds whatever its class or its code raises."""
        return self._call(self._start)

    def task_configs(self) -> Future[list[dict[str, str]]]:
        """Ask for the tasks' configs, as they belong into the config topic: with references, never with secrets."""
        return self._call(self._task_configs)

    def stop(self) -> Future[None]:
        """Stop it, once the calls before have returned; the thread ends with that."""
        stopped = self._call(self._stop)
        self._calls.put(None)
        return stopped

    # On the connector's thread.

    def _start(self) -> None:
        config = self._meant()
        cls = connector_class(config["connector.class"])
        self.version = cls.version()
        connector = cls()
        connector.initialize(self)
        self._connector = connector
        connector.start(config)

    def _task_configs(self) -> list[dict[str, str]]:
        assert self._connector is not None  # noqa: S101 (start comes first)
        return with_references(self._config, desired_task_configs(self._connector, self._meant()))

    def _stop(self) -> None:
        if self._connector is not None:
            self._connector.stop()

    def _meant(self) -> dict[str, str]:
        """Return the config with its references replaced: for the connector alone, never for a topic or the log."""
        resolved = resolver(self._worker).resolve_for(self._config)
        if resolved.ttl is not None and resolved.config.get(RELOAD, "restart").strip().lower() == "restart":
            self.good_until = min(self.good_until, time.monotonic() + max(resolved.ttl / 1000, _SOONEST_RELOAD_SECONDS))
        return resolved.config

    def _call(self, work: Callable[[], T]) -> Future[T]:
        future: Future[T] = Future()

        def call() -> None:
            try:
                result = work()
            except Exception as error:  # noqa: BLE001 (a connector's own code: whatever it raises is its failure)
                future.set_exception(error)
            else:
                future.set_result(result)
            self._notify()

        self._calls.put(call)
        return future

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            call()
