"""The Airflow plugin: REST API, UI page and pause sync in the API server.

Every Airflow component imports this module, so it imports no large packages. Only the API server builds the app.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from airflow.configuration import conf
from airflow.plugins_manager import AirflowPlugin

from sluiceway.provider import preload
from sluiceway.provider.api.sqlite_writes import OneWriteAtATime

URL_PREFIX = "/sluiceway"

_BASE_URL = conf.get("api", "base_url", fallback="")


def url_path(base_url: str) -> str:
    """Return the path below which the app is served. ``base_url`` is ``[api] base_url``, which may have a path. No I/O."""
    return f"{urlsplit(base_url).path.rstrip('/')}{URL_PREFIX}"


def external_views(base_url: str) -> list[dict[str, Any]]:
    """Return the page's entries in Airflow's UI: in the navigation, and as a tab of each DAG. No I/O."""
    ui = f"{url_path(base_url)}/ui"
    icons = {"icon": f"{ui}/icon.svg", "icon_dark_mode": f"{ui}/icon-dark.svg"}
    page = f"{ui}/index.html"
    return [
        {"name": "Connect", "href": page, "destination": "nav", "nav_top_level": True, "url_route": "connectors", **icons},
        {"name": "Connector", "href": f"{page}?dag={{DAG_ID}}", "destination": "dag", "url_route": "connector", **icons},
    ]


def root_middlewares(database: str, base_url: str) -> list[dict[str, Any]]:
    """Return the API server's middlewares: one if ``[database] sql_alchemy_conn`` is of SQLite, otherwise none. No I/O."""
    if not database.startswith("sqlite"):
        return []
    free = f"{url_path(base_url)}/"
    return [{"name": "one write at a time", "middleware": OneWriteAtATime, "kwargs": {"free": free}}]


class SluicewayPlugin(AirflowPlugin):
    """Mounts Connect's REST API and the connectors' page under ``/sluiceway``, behind Airflow's authentication.

    The app also runs the pause sync, which keeps DAGs' paused flags and connectors' target states equal. The listener runs in the
    scheduler, the middleware in the API server.
    """

    name = "sluiceway"
    external_views = external_views(_BASE_URL)
    fastapi_root_middlewares = root_middlewares(conf.get("database", "sql_alchemy_conn", fallback=""), _BASE_URL)
    listeners: list[Any] = [preload]

    _apps: list[dict[str, Any]] | None = None

    @property
    def fastapi_apps(self) -> list[dict[str, Any]]:  # type: ignore[override]  # Airflow only reads it
        """Build the app on first access, since that takes seconds and only the API server serves it."""
        if self._apps is None:
            from sluiceway.provider.api.app import make_airflow_app

            self._apps = [{"name": self.name, "app": make_airflow_app(), "url_prefix": URL_PREFIX}]
        return self._apps
