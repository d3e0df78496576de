"""Extra links of a connector's task in Airflow's UI: to the connector's page, the REST API, and the Spark UI.

Airflow stores a link as an XCom of the task when the task ends. A connector's task may run for weeks, so its operator calls
``publish`` when the task starts and when the Spark UI's address is known.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterable
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
_PAGE = "/plugin/connectors"


class ConnectorPageLink(BaseOperatorLink):
    """Link to the connector in the page of all connectors in Airflow's UI. Airflow stores the class's name."""

    name = "Connector"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        return page_url(str(getattr(operator, "connector", "")))


class ConnectorRestLink(BaseOperatorLink):
    """Link to the connector's status in the REST API under Airflow's API server. Airflow stores the class's name."""

    name = "Connector status (REST)"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        return rest_url(str(getattr(operator, "connector", "")))


CONNECTOR_LINKS = (ConnectorPageLink(), ConnectorRestLink())
"""The links of tasks that run one connector."""


class SparkUiLink(BaseOperatorLink):
    """Link to the Spark application's UI, else to ``[sluiceway] spark_ui_url``. Airflow stores the class's name."""

    name = "Spark UI"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        return getattr(operator, "driver_ui_url", None) or read_settings().spark_ui_url


def page_url(connector: str) -> str:
    """Return the address of a connector's page in Airflow's UI."""
    return f"{_base_url()}{_PAGE}#{quote(connector, safe='')}"


def rest_url(connector: str) -> str:
    """Return the address of a connector's status for a browser."""
    return f"{_base_url()}{_MOUNTED}/connectors/{quote(connector, safe='')}/status"


def _base_url() -> str:
    from airflow.configuration import conf

    return conf.get("api", "base_url", fallback="").rstrip("/")


def publish(operator: Any, ti: Any) -> None:
    """Store the links of a running task, so that the UI shows them before the task ends. Runs in the task's process."""
    _store(operator.operator_extra_links, operator, ti, ti.xcom_push)


def publish_from_triggerer(operator: Any, ti: Any) -> None:
    """Store the links of a task that starts in the triggerer.

    There, ``operator`` is the one that Airflow has serialized: it has lost its links, and what ``xcom_push`` reads.
    """
    from airflow.sdk.execution_time.xcom import XCom

    push = functools.partial(XCom.set, dag_id=ti.dag_id, task_id=ti.task_id, run_id=ti.run_id, map_index=ti.map_index)
    _store((*CONNECTOR_LINKS, SparkUiLink()), operator, ti, push)


def _store(links: Iterable[BaseOperatorLink], operator: Any, ti: Any, push: Callable[..., None]) -> None:
    for link in links:
        try:
            push(key=link.xcom_key, value=link.get_link(operator, ti_key=ti))
        except AirflowRuntimeError as error:  # a missing link must not keep a connector from starting
            log.warning("The link %r is missing until the task ends: Airflow did not store it (%s)", link.name, error)
