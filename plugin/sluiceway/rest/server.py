"""The standalone REST server on the worker's ``listeners`` and ``admin.listeners`` (Connect's RestServer)."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence

from fastapi import FastAPI

from sluiceway.config.worker import WorkerConfig
from sluiceway.herder import Herder
from sluiceway.herder.loggers import Loggers
from sluiceway.herder.plugin_path import use_plugin_path
from sluiceway.herder.worker_check import check_worker
from sluiceway.metrics.beans import Bean
from sluiceway.package_imports import import_packages_first
from sluiceway.rest.app import Resources, make_app
from sluiceway.rest.authentication import Authentication
from sluiceway.rest.cluster_id import ClusterId
from sluiceway.rest.credentials import Authenticator
from sluiceway.rest.headers import Cors, ExtraHeaders
from sluiceway.rest.hosts import OwnHosts, is_loopback
from sluiceway.rest.listening import ListenerGroup
from sluiceway.rest.settings import Listener, RestSettings
from sluiceway.rest.tls import ADMIN_PREFIX, PREFIX, server_context

log = logging.getLogger(__name__)


class RestServer:
    """Serves the REST API on its own threads. Several servers may run in one process.

    ``metrics`` returns the metrics of tasks that run for this process itself, in standalone mode.

    Raises ConfigError for invalid keys, converters that are not installed, and unreadable files.
    """

    def __init__(
        self,
        worker: WorkerConfig,
        herder_provider: Callable[[], Herder],
        loggers: Loggers | None = None,
        *,
        metrics: Callable[[], list[Bean]] = list,
    ) -> None:
        self._metrics = metrics
        self._settings = RestSettings.of(worker)
        self._worker = worker
        self._herder_provider = herder_provider
        self._loggers = loggers or Loggers()
        self._authenticator = Authenticator.of(worker.raw, os.environ)
        use_plugin_path(worker.raw)
        check_worker(worker)
        admin = self._settings.admin_listeners
        self._groups = self._grouped(self._settings.listeners, Resources.ALL if admin is None else Resources.CONNECTORS)
        self._admin_groups = self._grouped(admin or (), Resources.ADMIN)

    @property
    def addresses(self) -> list[str]:
        """The URLs of ``listeners`` in their order, once started. A listener on port 0 shows its actual port."""
        return _in_order(self._settings.listeners, self._groups)

    @property
    def admin_addresses(self) -> list[str]:
        """The URLs of ``admin.listeners``; empty if they are not set."""
        return _in_order(self._settings.admin_listeners or (), self._admin_groups)

    def start(self) -> None:
        """Bind the listeners and return once requests are served.

        Raises MissingToolError if an address cannot be bound; then no listener stays bound.
        """
        groups = [*self._groups, *self._admin_groups]
        self._herder_provider().follow_log_levels(self._loggers)
        try:
            for group in groups:
                group.bind()
            for group in groups:
                group.start()
        except BaseException:
            self.stop()
            raise
        log.info("REST API is listening on %s", ", ".join(self.addresses + self.admin_addresses))
        if not self._authenticator.challenges:
            log.info("The REST API requires no credentials: anyone who can reach it can run code on this machine")

    def stop(self) -> None:
        """Wait up to 5 s for running requests, then close the listeners. Does nothing if not started."""
        groups = [*self._groups, *self._admin_groups]
        for group in groups:
            group.ask_to_stop()
        for group in groups:
            group.stop()

    def _grouped(self, listeners: Sequence[Listener], resources: Resources) -> list[ListenerGroup]:
        """Return a group of listeners for http and one for https. Each has its own event loop."""
        groups: list[ListenerGroup] = []
        for scheme in dict.fromkeys(listener.scheme for listener in listeners):
            prefix = ADMIN_PREFIX if resources is Resources.ADMIN else PREFIX
            context = server_context(self._worker.raw, prefix) if scheme == "https" else None
            same = [listener for listener in listeners if listener.scheme == scheme]
            own = all(is_loopback(listener.host) for listener in same)
            groups.append(ListenerGroup(same, self._app(resources, own=own), context))
        return groups

    def _app(self, resources: Resources, *, own: bool) -> FastAPI:
        """Return the app for listeners; ``own``: only this machine reaches them."""
        app = make_app(
            self._herder_provider,
            kafka_cluster_id=ClusterId(self._worker),
            resources=resources,
            loggers=self._loggers,
            metrics=self._metrics,
        )
        # The middleware added last is the outermost.
        app.add_middleware(Authentication, authenticator=self._authenticator)
        if self._settings.cors.origins:
            app.add_middleware(Cors, rules=self._settings.cors)
        if own:
            advertised = self._worker.raw.get("rest.advertised.host.name", "").strip().lower()
            app.add_middleware(OwnHosts, names=frozenset({advertised} - {""}), origins=self._settings.cors.origins)
        if self._settings.headers:
            app.add_middleware(ExtraHeaders, rules=self._settings.headers)
        return app


def _in_order(listeners: Sequence[Listener], groups: Sequence[ListenerGroup]) -> list[str]:
    urls = {scheme: iter(group.urls) for group in groups for scheme in [group.scheme]}
    return [url for listener in listeners for url in [next(urls[listener.scheme], None)] if url is not None]


def serve(worker: WorkerConfig) -> None:
    """Serve the REST API over the worker's three topics until SIGTERM or SIGINT. Call from the main thread."""
    from sluiceway.storage.factory import open_stores

    import_packages_first()
    with _stop_signals() as stopping, open_stores(worker) as stores:
        herder = Herder(worker, stores.config, stores.status, stores.offsets)
        server = RestServer(worker, lambda: herder)
        server.start()
        try:
            stopping.wait()
        finally:
            server.stop()
    log.info("REST API stopped")


@contextlib.contextmanager
def _stop_signals() -> Iterator[threading.Event]:
    """Yield an event that SIGTERM and SIGINT set. Restore the signal handlers afterwards."""
    event = threading.Event()
    before: Mapping[signal.Signals, object] = {
        number: signal.signal(number, lambda *_: event.set()) for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield event
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
