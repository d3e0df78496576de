"""A driver's metrics: its own, those that its tasks send, and the statuses of its connectors. Runs on the driver."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from sluiceway import __version__
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConfigError
from sluiceway.herder.connector_metrics import with_worker
from sluiceway.herder.overview import Overview
from sluiceway.herder.states import Clock
from sluiceway.metrics.beans import CONNECT, Bean
from sluiceway.metrics.collector import MetricsCollector, distinct
from sluiceway.metrics.otlp import export_of
from sluiceway.metrics.publisher import MetricsTarget
from sluiceway.metrics.registry import registry
from sluiceway.metrics.server import LISTENER, MetricsServer
from sluiceway.storage.interfaces import ConfigBackingStore, StatusBackingStore

_LOOPBACK = "127.0.0.1"  # the driver's host in local mode


class DriverMetrics:
    """Serves the metrics of one driver, unless its worker's ``sluiceway.metrics.listener`` is empty, and exports them by OTLP.

    Args:
        worker: the worker's config.
        worker_id: identifies the driver in status records.
        config_store: names the connectors.
        status_store: has their statuses.
        host: the driver's name or address in the network of its tasks.

    Attributes:
        hosted: returns the names of the connectors that the driver runs. Set it before the first request.

    Raises ConfigError for an address on which it cannot listen.
    """

    def __init__(
        self, worker: WorkerConfig, worker_id: str, config_store: ConfigBackingStore, status_store: StatusBackingStore, host: str
    ) -> None:
        self.hosted: Callable[[], Iterable[str]] = list
        self.url: str | None = None
        self.target: MetricsTarget | None = None
        self._worker_id = worker_id
        self._timeout = worker.number("sluiceway.heartbeat.timeout.ms")
        self._config_store = config_store
        self._status_store = status_store
        self._collector = MetricsCollector()
        self._server: MetricsServer | None = None
        if worker.metrics_listener:
            address, port = _address(worker.metrics_listener)
            if not port and host == _LOOPBACK:  # tasks and REST API, which alone know a port that is free, are on this machine
                address = address or host
            self._server = MetricsServer(address, port, self._collector, self._served)
            self.url, self.target = self._server.url(host), self._server.target(host)
        self._export = export_of(lambda: self._served(self._collector.beans()), worker_id)

    def beans(self) -> list[Bean]:
        """Return the metrics of the driver's process and of its tasks'."""
        return distinct([*registry.beans(), *self._collector.beans()])

    def close(self) -> None:
        if self._export is not None:
            self._export.close()
        if self._server is not None:
            self._server.close()

    def _served(self, received: list[Bean]) -> list[Bean]:
        clock = Clock(int(time.time() * 1000), self._timeout)
        overview = Overview(self._config_store.snapshot(), self._status_store.snapshot(), clock, self._worker_id)
        info = Bean(CONNECT, "app-info", {"client-id": self._worker_id}, {"version": __version__})
        return with_worker(distinct([info, *registry.beans(), *received]), overview, self.hosted())


def _address(listener: str) -> tuple[str, int]:
    """Parse ``http://host:port``. Raises ConfigError."""
    scheme, separator, address = listener.partition("://")
    host, _, port = address.rpartition(":")
    if not separator or scheme.lower() != "http" or not port.isdecimal() or int(port) > 65535:
        raise ConfigError(LISTENER, listener, "Expected http://host:port. Leave out the host to listen on all interfaces")
    return host.strip("[]"), int(port)
