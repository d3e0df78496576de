"""Makes the REST app, to be served alone (``sluiceway.rest.server``) or mounted in another app (Airflow's API server)."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

from fastapi import FastAPI

from sluiceway import __version__
from sluiceway.herder import Herder
from sluiceway.herder.loggers import Loggers
from sluiceway.rest import administration_routes, errors, logger_routes, plugin_routes, restart_routes, worker_routes
from sluiceway.rest import connector_routes as routes
from sluiceway.rest.conventions import PathRules

_ABOUT = 'Kafka Connect\'s REST API. Errors are always {"error_code": 404, "message": "..."}.'


class Resources(enum.Enum):
    """Which part of the API an app serves: ``/admin`` may have listeners of its own."""

    CONNECTORS = (
        worker_routes.router,
        routes.router,
        restart_routes.router,
        administration_routes.router,
        plugin_routes.router,
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
) -> FastAPI:
    """Return Connect's REST API as a FastAPI app, described at ``/docs``.

    Both callables are called for each request, on a pool thread, so they may block but should remember their answer; what
    ``herder_provider`` raises is answered like any error. ``dependencies`` (``fastapi.Depends(...)``) run before every
    endpoint, for authentication and permissions; the path parameter that names the connector is ``name``.
    """
    app = FastAPI(title="Sluiceway", version=__version__, description=_ABOUT, dependencies=list(dependencies), redoc_url=None)
    app.state.herder_provider = herder_provider
    app.state.kafka_cluster_id = kafka_cluster_id
    app.state.loggers = loggers or Loggers()
    for router in resources.value:
        app.include_router(router)
    app.add_middleware(PathRules)
    errors.install(app)
    return app
