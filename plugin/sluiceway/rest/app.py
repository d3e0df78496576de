"""Creates the REST app. ``sluiceway.rest.server`` serves it alone; Airflow's API server mounts it."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

from fastapi import FastAPI

from sluiceway import __version__
from sluiceway.herder import Herder
from sluiceway.herder.loggers import Loggers
from sluiceway.metrics.beans import Bean
from sluiceway.rest import (
    connector_routes,
    dead_letter_routes,
    errors,
    logger_routes,
    metrics_routes,
    plugin_routes,
    signal_routes,
    worker_routes,
)
from sluiceway.rest.connector_details import ConnectorDetails
from sluiceway.rest.conventions import PathRules
from sluiceway.rest.spans import RequestSpans

_ABOUT = 'Kafka Connect\'s REST API. Errors are always {"error_code": 404, "message": "..."}.'


class Resources(enum.Enum):
    """The endpoints that an app serves. ``/admin`` is separate because it may have its own listeners."""

    CONNECTORS = (
        worker_routes.router,
        connector_routes.router,
        dead_letter_routes.router,
        signal_routes.router,
        plugin_routes.router,
        metrics_routes.router,
    )
    ADMIN = (logger_routes.router,)
    ALL = (*CONNECTORS, *ADMIN)


def make_app(
    herder_provider: Callable[[], Herder],
    *,
    kafka_cluster_id: Callable[[], str | None] = lambda: None,
    dependencies: Sequence[Any] = (),
    resources: Resources = Resources.ALL,
    loggers: Loggers | None = None,
    gzips: bool = False,
    metrics: Callable[[], list[Bean]] = list,
) -> FastAPI:
    """Return Connect's REST API as a FastAPI app, with its OpenAPI description at ``/docs``.

    ``herder_provider`` and ``kafka_cluster_id`` are called for each request on a pool thread: they may block and should cache
    their result. An error that ``herder_provider`` raises becomes the response. ``dependencies`` (``fastapi.Depends(...)``) run
    before every endpoint, for authentication and permissions; the path parameter with the connector's name is ``name``.
    ``gzips``: compress the expanded list of connectors for clients that accept it, as the server does with every response in
    which the app is mounted, but faster. Connect compresses nothing. ``metrics`` returns those of tasks of this process.
    """
    app = FastAPI(title="Sluiceway", version=__version__, description=_ABOUT, dependencies=list(dependencies), redoc_url=None)
    app.state.herder_provider = herder_provider
    app.state.kafka_cluster_id = kafka_cluster_id
    app.state.loggers = loggers or Loggers()
    app.state.connector_details = ConnectorDetails()
    app.state.gzips = gzips
    app.state.local_metrics = metrics
    for router in resources.value:
        app.include_router(router)
    app.add_middleware(RequestSpans)
    app.add_middleware(PathRules)
    errors.install(app)
    return app
