"""Builds the REST app that Airflow's API server mounts, with the pause sync and the connectors' page.

While the app is served, a thread of each API server process keeps one connection to Kafka and opens it again if opening fails.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from fastapi import Depends, FastAPI

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError
from sluiceway.herder import Herder
from sluiceway.herder.loggers import Loggers
from sluiceway.herder.plugin_path import use_plugin_path
from sluiceway.preview.isolated import isolated
from sluiceway.provider.api.access import authorize, refuse_other_sites
from sluiceway.provider.dag_bundle.taken_ids import refuse_taken_ids
from sluiceway.provider.late_reruns import LateReruns
from sluiceway.provider.leader_loop import LeaderLoop
from sluiceway.provider.live_assets.kafka_cluster import KafkaCluster
from sluiceway.provider.live_assets.live_assets import LiveAssets
from sluiceway.provider.pause_sync.pause_sync import PauseSync
from sluiceway.provider.progress.probe import KafkaProbe
from sluiceway.provider.settings import Settings, read_settings
from sluiceway.provider.ui import routes as ui_routes
from sluiceway.provider.ui.dashboard import Dashboard
from sluiceway.rest.app import make_app
from sluiceway.rest.cluster_id import ClusterId
from sluiceway.storage.factory import Stores, open_stores
from sluiceway.storage.history import Origin

log = logging.getLogger(__name__)

_MIN_RETRY_SECONDS, _MAX_RETRY_SECONDS = 1.0, 30.0


@dataclass(frozen=True, slots=True)
class _Connection:
    """The objects that serve connectors in an API server process. Closing ``resources`` closes all of them."""

    herder: Herder
    dashboard: Dashboard
    cluster_id: ClusterId
    resources: ExitStack

    @classmethod
    def open(cls, settings: Settings, loggers: Loggers) -> _Connection:
        """Connect to Kafka, and start measuring progress and the pause sync; on failure, close what was opened."""
        from sluiceway.provider.pause_sync.airflow_db import AirflowDatabase

        worker = settings.worker()
        cluster_id = ClusterId(worker)
        use_plugin_path(worker.raw)
        with ExitStack() as resources:
            stores = open_stores(worker)
            stores.start()
            resources.callback(stores.stop)
            admit = admission(settings.bundle_name)
            herder = Herder(worker, stores.config, stores.status, stores.offsets, admit=admit, isolated=isolated)
            herder.follow_log_levels(loggers)
            probe = KafkaProbe(worker, client_id=f"{worker.group_id}-ui")
            dashboard = Dashboard(worker, herder, stores.config, probe, AirflowDatabase())
            dashboard.start()
            resources.callback(dashboard.stop)
            if settings.mirror_enabled:
                sync = make_pause_sync(settings, worker, stores, herder, cluster_id)
                sync.start()
                resources.callback(sync.stop)
                for loop in leader_loops(worker, stores, herder, dashboard, sync):
                    loop.start()
                    resources.callback(loop.stop)
            state = "on" if settings.mirror_enabled else "off"
            log.info("Serving the connectors of Connect cluster %s, pause sync %s", worker.group_id, state)
            return cls(herder, dashboard, cluster_id, resources.pop_all())


class Backend:
    """Holds the connection of one API server process. Opens it in a thread, since Kafka may not be available at the start."""

    def __init__(self, settings: Settings, loggers: Loggers) -> None:
        self._settings = settings
        self._loggers = loggers
        self._connection: _Connection | None = None
        self._problem = "the connection is being opened"
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._open, name="sluiceway-open", daemon=True)

    def start(self) -> None:
        """Start to open the connection."""
        self._thread.start()

    def stop(self) -> None:
        """Close the connection."""
        self._stopping.set()
        self._thread.join(timeout=15)
        self._close()

    def herder(self) -> Herder:
        """Return the herder; raises ConnectError with the reason while there is no connection."""
        return self._connected().herder

    def dashboard(self) -> Dashboard:
        """Return the page's data; raises ConnectError with the reason while there is no connection."""
        return self._connected().dashboard

    def cluster_id(self) -> str | None:
        """Return the id of the Kafka cluster; None while it is not known."""
        return None if self._connection is None else self._connection.cluster_id()

    def _connected(self) -> _Connection:
        if self._connection is None:
            raise ConnectError(f"No connection to Kafka: {self._problem}")
        return self._connection

    def _open(self) -> None:
        pause = _MIN_RETRY_SECONDS
        while not self._stopping.is_set():
            try:
                self._connection = _Connection.open(self._settings, self._loggers)
                break
            except ConnectError as error:
                self._problem = str(error)
                log.error("Cannot serve connectors, trying again in %g s: %s", pause, error)
            except Exception as error:  # a thread that ends with an invalid setting would leave requests without a reason
                self._problem = f"{type(error).__name__}: {error}"
                log.exception("Cannot serve connectors, trying again in %g s", pause)
            self._stopping.wait(pause)
            pause = min(2 * pause, _MAX_RETRY_SECONDS)
        if self._stopping.is_set():  # stop() no longer waits for an attempt that took too long
            self._close()

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.resources.close()


def admission(bundle: str) -> Callable[[str, Mapping[str, str]], None]:
    """Return what refuses a new connector whose DAG's id is that of a DAG of another bundle."""
    from sluiceway.provider.pause_sync.airflow_db import AirflowDatabase

    return partial(refuse_taken_ids, partial(AirflowDatabase().other_bundles, bundle=bundle))


def make_pause_sync(settings: Settings, worker: WorkerConfig, stores: Stores, herder: Herder, cluster_id: ClusterId) -> PauseSync:
    """Return the pause sync between these stores and this Airflow's database, not started yet."""
    import airflow.settings
    from airflow.configuration import AIRFLOW_HOME

    from sluiceway.provider.pause_sync.airflow_db import AirflowDatabase
    from sluiceway.provider.pause_sync.leadership import leadership

    engine = airflow.settings.engine
    if engine is None:
        raise ConnectError("Airflow's database is not configured in this process. The pause sync runs in the API server only.")
    lead = leadership(engine, Path(AIRFLOW_HOME), worker.group_id)
    recorded = herder.acting_for(Origin(client="Airflow", note="pause sync"))

    def cluster() -> str:
        kafka = cluster_id()
        if kafka is None:
            raise ConnectError("Kafka has not told its cluster id yet.")
        return f"group {worker.group_id} with the topic {worker.config_topic} of the Kafka cluster {kafka}"

    return PauseSync(
        stores.config,
        recorded,
        AirflowDatabase(),
        lead,
        bundle=settings.bundle_name,
        cluster=cluster,
        interval=settings.mirror_interval,
    )


def leader_loops(
    worker: WorkerConfig, stores: Stores, herder: Herder, dashboard: Dashboard, sync: PauseSync
) -> tuple[LeaderLoop, ...]:
    """Return what the leader of the pause sync does beside it, not started yet: asset events, and runs for late records."""
    from sluiceway.provider.pause_sync.airflow_db import AirflowDatabase

    cluster = KafkaCluster(worker, herder, lambda: dashboard.sampler.last.connectors)
    assets = LiveAssets(worker, stores.config, cluster, AirflowDatabase(), lambda: sync.leads)
    reruns = LateReruns(stores.config, herder.waiting_intervals, AirflowDatabase(), lambda: sync.leads)
    return assets.loop, LeaderLoop("late-reruns", reruns.step, "Runs of late records cannot be cleared")


def make_airflow_app() -> FastAPI:
    """Return the app to mount. Opens no connection before it is served: API servers may fork after this call."""
    backend: Backend | None = None
    loggers = Loggers()

    def current() -> Backend:
        if backend is None:
            raise ConnectError("The API server is still starting. Try again in some seconds.")
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
        dependencies=[Depends(refuse_other_sites), Depends(authorize)],
        loggers=loggers,
        gzips=True,
    )
    ui_routes.install(app, lambda: current().dashboard())
    app.router.lifespan_context = lifespan
    return app
