"""Makes the REST app, to be served alone (``sluiceway.rest.server``) or mounted in another app (Airflow's API server)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fastapi import FastAPI
from sluiceway import __version__
from sluiceway.herder import Herder
from sluiceway.rest import errors, plugin_routes, restart_routes, routes
from sluiceway.rest.conventions import PathRules


def make_app(
    herder_provider: Callable[[], Herder],
    *,
    kafka_cluster_id: Callable[[], str | None] = lambda: None,
    dependencies: Sequence[Any] = (),
) -> FastAPI:
    """Return Connect's REST API as a FastAPI app.

    Both callables are called for each request, on a pool thread, so they may block but should remember their answer; what
    ``herder_provider`` raises is answered like any error. ``dependencies`` (``fastapi.Depends(...)``) run before every
    endpoint, for authentication and permissions; the path parameter that names the connector is ``name``.
    """
    app = FastAPI(
        title="Sluiceway", version=__version__, dependencies=list(dependencies),
        openapi_url=None, docs_url=None, redoc_url=None,
    )  # fmt: skip
    app.state.herder_provider = herder_provider
    app.state.kafka_cluster_id = kafka_cluster_id
    app.include_router(routes.router)
    app.include_router(restart_routes.router)
    app.include_router(plugin_routes.router)
    app.add_middleware(PathRules)
    errors.install(app)
    return app
