"""Runs a Connector object on a thread of its own, so that a connector call that never returns blocks no other thread."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import ExitStack
from typing import TypeVar

from sluiceway.api import Connector, OffsetStorageReader
from sluiceway.config.connector import CONNECTOR_VERSION, JAVA_OPTS
from sluiceway.config.plugin_keys import IN_JAVA
from sluiceway.config.variables import resolution_for_use, with_references
from sluiceway.config.worker import WorkerConfig
from sluiceway.discovery import connector_class, language_of
from sluiceway.errors import ConnectError
from sluiceway.herder.reconcile import desired_task_configs
from sluiceway.herder.substitutes import warn_of_substitutes
from sluiceway.herder.unknown_keys import report_unknown_keys
from sluiceway.java_plugins.hosts import task_host
from sluiceway.runtime.waits import Waits
from sluiceway.worker.connector_offsets import ConnectorOffsetReader

RELOAD = "config.action.reload"
_MIN_TTL_SECONDS = 1.0  # a config provider that returns a TTL of 0 would otherwise restart its connector all the time

T = TypeVar("T")


class ConnectorThread:
    """One Connector object from its creation to ``stop``. All its methods are called on this thread, one after the other.

    The methods for the runner return at once.

    Args:
        name: the connector's name.
        config: its config as in the config topic, with references to config providers.
        worker: has the config providers that resolve the references.
        offsets: reads the connector's offsets; closed once the connector has stopped.
        notify: called on any thread when a call has returned, or the connector asked for new task configs or raised an error.

    Attributes:
        started: completes when ``Connector.start`` has returned, or with the error that prevented it.
        version: the connector class's version, once known.
        reconfigure: set by the connector to have its task configs requested again.
        error: the error that the connector raised through its context.
        valid_until: when (monotonic seconds) the first value of a config provider expires and, by ``config.action.reload``,
            the connector must be restarted.
        waits: what the connector waits for.
    """

    def __init__(
        self,
        name: str,
        config: Mapping[str, str],
        worker: WorkerConfig,
        offsets: ConnectorOffsetReader,
        notify: Callable[[], None],
    ) -> None:
        self.started: Future[None] = Future()
        self.reconfigure = False
        self.error: BaseException | None = None
        self.version: str | None = None
        self.valid_until = float("inf")
        self.waits = Waits()
        self.waits.show = notify
        self._name = name
        self._config = config
        self._worker = worker
        self._offsets = offsets
        self._notify = notify
        self._connector: Connector | None = None
        self._resources = ExitStack()  # entered and closed on the connector's thread
        self._calls: queue.SimpleQueue[Callable[[Connector | None], None] | None] = queue.SimpleQueue()
        threading.Thread(target=self._run, name=f"connector-{name}-calls", daemon=True).start()

    # SourceConnectorContext, for the connector and its threads.

    def request_task_reconfiguration(self) -> None:
        self.reconfigure = True
        self._notify()

    def raise_error(self, error: BaseException) -> None:
        self.error = error
        self._notify()

    def waiting(self, reason: object = None, seconds: float = 0.0) -> None:
        self.waits.waiting(reason, seconds)

    @property
    def offset_storage_reader(self) -> OffsetStorageReader:
        return self._offsets

    # For the runner.

    def task_configs(self) -> Future[list[dict[str, str]]]:
        """Request the task configs as the config topic stores them: with references, never with secrets."""
        return self._call(self._task_configs)

    def stop(self) -> Future[None]:
        """Stop the connector once all earlier calls have returned; then the thread ends."""
        stopped = self._call(self._stop)
        self._calls.put(None)
        return stopped

    def abandon(self) -> None:
        """Give up a connector that has not stopped in time. Its thread ends once the call that hangs returns."""
        if self._connector is not None:
            self._connector.abandon()

    # On the connector's thread.

    def _run(self) -> None:
        connector = self._start()
        while (call := self._calls.get()) is not None:
            call(connector)
        self._offsets.close()

    def _start(self) -> Connector | None:
        """Create and start the connector; return it even if ``start`` failed, so that it can be stopped."""
        connector: Connector | None = None
        try:
            config = self._resolved_config()
            cls = connector_class(config["connector.class"], config.get(CONNECTOR_VERSION))
            self.version = cls.version()
            if language_of(cls) == IN_JAVA:  # also for its definition: a process that only validates would need its memory
                java = task_host(f"connector {self._name}", config.get(JAVA_OPTS, ""), f"[{self._name}|worker] ")
                self._resources.enter_context(java)
            report_unknown_keys(self._name, self._config, cls, self._worker)
            warn_of_substitutes(self._name, self._config, self._worker)
            new = cls()
            new.initialize(self)
            self._connector = connector = new
            connector.start(config)
        except Exception as error:  # noqa: BLE001 (a connector's own code: any error is the connector's failure)
            self.started.set_exception(error)
        else:
            self.started.set_result(None)
        self._notify()
        return connector

    def _stop(self, connector: Connector | None) -> None:
        with self._resources:
            if connector is not None:
                connector.stop()

    def _task_configs(self, connector: Connector | None) -> list[dict[str, str]]:
        if connector is None:
            raise ConnectError(f"Connector {self._name} could not be created, so it has no task configs; see its status.")
        return with_references(self._config, desired_task_configs(connector, self._resolved_config()))

    def _resolved_config(self) -> dict[str, str]:
        """Return the config with its references replaced: for the connector only, never for a topic or the log."""
        resolved = resolution_for_use(self._worker, self._config)
        if resolved.ttl is not None and resolved.config.get(RELOAD, "restart").strip().lower() == "restart":
            self.valid_until = min(self.valid_until, time.monotonic() + max(resolved.ttl / 1000, _MIN_TTL_SECONDS))
        return resolved.config

    def _call(self, work: Callable[[Connector | None], T]) -> Future[T]:
        future: Future[T] = Future()

        def call(connector: Connector | None) -> None:
            try:
                result = work(connector)
            except Exception as error:  # noqa: BLE001 (a connector's own code: any error is the connector's failure)
                future.set_exception(error)
            else:
                future.set_result(result)
            self._notify()

        self._calls.put(call)
        return future
