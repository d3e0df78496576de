"""The REST app as Airflow's API server mounts it: the herder over Kafka's topics, and the mirror, for as long as it serves."""

from __future__ import annotations

import logging
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import Depends, FastAPI

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError
from sluiceway.herder import Herder
from sluiceway.herder.loggers import Loggers
from sluiceway.herder.plugin_path import use_plugin_path
from sluiceway.provider.api.access import authorise, refuse_other_sites
from sluiceway.provider.pause_sync.pause_sync import Mirror
from sluiceway.provider.progress.probe import KafkaProbe
from sluiceway.provider.settings import Settings, read_settings
from sluiceway.provider.ui import routes as ui_routes
from sluiceway.provider.ui.dashboard import Dashboard
from sluiceway.rest.app import make_app
from sluiceway.rest.cluster_id import ClusterId
from sluiceway.storage.factory import Stores, open_stores

log = logging.getLogger(__name__)

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0  # seconds between attempts to reach Kafka


class Backend:
    """What one API-server process has: stores, herder, mirror and the page's data.

    Opened in the background, since Kafka may come later.
    """

    def __init__(self, settings: Settings, loggers: Loggers) -> None:
        self._settings = settings
        self._loggers = loggers
        self._herder: Herder | None = None
        self._stores: Stores | None = None
        self._mirror: Mirror | None = None
        self._dashboard: Dashboard | None = None
        self._cluster_id: ClusterId | None = None
        self._problem = "it is still being opened"
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._open, name="sluiceway-open", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(timeout=15)
        self._close()

    def herder(self) -> Herder:
        """Return the herder; raises ConnectError, saying why, as long as there is none."""
        if self._herder is None:
            raise ConnectError(f"The connection to Kafka is not there: {self._problem}")
        return self._herder

    def dashboard(self) -> Dashboard:
        """Return what the page shows; raises ConnectError, saying why, as long as there is none."""
        if self._dashboard is None:
            raise ConnectError(f"The connection to Kafka is not there: {self._problem}")
        return self._dashboard

    def cluster_id(self) -> str | None:
        return None if self._cluster_id is None else self._cluster_id()

    def _open(self) -> None:
        pause = _FIRST_PAUSE
        while not self._stopping.is_set():
            try:
                self._connect()
                return
            except ConnectError as error:
                self._problem = str(error)
                log.error("Connectors are not available: %s Trying again in %g s.", error, pause)
            except Exception as error:  # one bad setting here must not leave the API server without a word
                self._problem = f"{type(error).__name__}: {error}"
                log.exception("Connectors are not available. Trying again in %g s.", pause)
            self._close()
            self._stopping.wait(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _close(self) -> None:
        for each in (self._mirror, self._dashboard, self._stores):
            if each is not None:
                each.stop()
        self._mirror = self._dashboard = self._stores = self._herder = None

    def _connect(self) -> None:
        worker = self._settings.worker()
        use_plugin_path(worker.raw)
        stores = open_stores(worker)
        stores.start()
        self._stores = stores
        self._cluster_id = ClusterId(worker)
        self._herder = herder = Herder(worker, stores.config, stores.status, stores.offsets)
        herder.follow_log_levels(self._loggers)
        self._dashboard = Dashboard(worker, herder, stores.config, KafkaProbe(worker))
        self._dashboard.start()
        if self._settings.mirror_enabled:
            self._mirror = make_mirror(self._settings, worker, stores, herder)
            self._mirror.start()
        log.info("Connectors of group %s are served, mirror %s", worker.group_id, "on" if self._mirror else "off")


def make_mirror(settings: Settings, worker: WorkerConfig, stores: Stores, herder: Herder) -> Mirror:
    """Return the mirror between these stores and this Airflow's database, not started yet."""
    import airflow.settings

    from sluiceway.provider.pause_sync.airflow_db import AirflowDatabase
    from sluiceway.provider.pause_sync.leadership import leadership

    lead = leadership(airflow.settings.engine, Path(airflow.settings.AIRFLOW_HOME), worker.group_id)
    return Mirror(stores.config, herder, AirflowDatabase(), lead, bundle=settings.bundle_name, interval=settings.mirror_interval)


def make_airflow_app() -> FastAPI:
    """Return the app to mount. Opens nothing yet: API servers may fork after this."""
    backend: Backend | None = None
    loggers = Loggers()

    def current() -> Backend:
        if backend is None:
            raise ConnectError("The API server has not started yet.")
        return backend

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        nonlocal backend
        backend = Backend(read_settings(), loggers)
        backend.start()
        try:
            yield
        finally:
            backend.stop()

    app = make_app(
        lambda: current().herder(),
        kafka_cluster_id=lambda: current().cluster_id(),
        dependencies=[Depends(refuse_other_sites), Depends(authorise)],
        loggers=loggers,
    )
    ui_routes.install(app, lambda: current().dashboard())
    app.router.lifespan_context = lifespan
    return app
