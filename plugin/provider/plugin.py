"""The Airflow plugin. Every Airflow component imports it, so it imports nothing heavy; only the API server builds the app."""

from __future__ import annotations

from typing import Any

from airflow.plugins_manager import AirflowPlugin

URL_PREFIX = "/sluiceway"


class SluicewayPlugin(AirflowPlugin):
    """Mounts Connect's REST API under ``/sluiceway``, behind Airflow's authentication, and runs the mirror beside it."""

    name = "sluiceway"

    _apps: list[dict[str, Any]] | None = None

    @property
    def fastapi_apps(self) -> list[dict[str, Any]]:
        """A property, since building the app takes seconds in components that do not serve it."""
        if self._apps is None:
            from sluiceway.provider.api import make_airflow_app

            self._apps = [{"name": self.name, "app": make_airflow_app(), "url_prefix": URL_PREFIX}]
        return self._apps
