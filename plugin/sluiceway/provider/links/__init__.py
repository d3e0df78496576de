"""Buttons on a connector's task in Airflow's UI: to its REST API, and to the Spark UI.

Airflow keeps a link as an XCom of the task, written when the task ends. A connector's task may last for weeks, so its operator
calls ``publish`` when it begins and when it learns where the Spark UI is.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow.sdk import BaseOperatorLink
from airflow.sdk.exceptions import AirflowRuntimeError

from sluiceway.provider.settings import read_settings

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey

log = logging.getLogger(__name__)

_MOUNTED = "/sluiceway"


class ConnectorRestLink(BaseOperatorLink):
    """The connector's status in the REST API that is mounted under Airflow's API server."""

    name = "Connector status (REST)"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        return rest_url(str(getattr(operator, "connector", "")))


class SparkUiLink(BaseOperatorLink):
    """The UI of the connector's Spark application, or what ``[sluiceway] spark_ui_url`` names; none if neither is known."""

    name = "Spark UI"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        return getattr(getattr(operator, "_hook", None), "ui_url", None) or read_settings().spark_ui_url


def rest_url(connector: str) -> str:
    """Return where a browser finds a connector's status, by ``[api] base_url``."""
    from airflow.configuration import conf

    base = conf.get("api", "base_url", fallback="").rstrip("/")
    return f"{base}{_MOUNTED}/connectors/{quote(connector, safe='')}/status"


def publish(operator: Any, ti: Any) -> None:
    """Write the links of a running task, so that the UI shows them before it ends. Runs in the task's process."""
    for link in operator.operator_extra_links:
        try:
            ti.xcom_push(key=link.xcom_key, value=link.get_link(operator, ti_key=ti))
        except AirflowRuntimeError as error:  # a button is not worth a connector's start
            log.warning("The link %r is not shown yet: %s", link.name, error)
