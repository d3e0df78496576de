"""Tells people when a connector makes no progress, by Airflow's own callbacks, notifiers, and deadline alerts.

``example_watch_progress`` runs a sink. If it commits nothing for ten minutes although it has lag, or if the task fails, a
notifier is called: here one that logs; ``SmtpNotifier`` and others of Airflow's providers take its place.
``example_watch_deadline`` watches the same sink from outside, every ten minutes, so it works for connectors in shared
applications too. Its sensor waits in the triggerer until the lag is small; if that takes more than ten minutes, the deadline
alert is called.

``SLUICEWAY_EXAMPLE_WATCHED_TOPIC``  the topic that the sink reads; default ``connect-test``
``SLUICEWAY_EXAMPLE_WATCHED_FILE``   the file that the sink writes; default ``watched.txt`` in AIRFLOW_HOME
"""

from __future__ import annotations

import logging
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pendulum
from airflow.sdk import DAG, BaseNotifier
from airflow.sdk.definitions.callback import AsyncCallback
from airflow.sdk.definitions.deadline import DeadlineAlert, DeadlineReference

from sluiceway.operators import SinkConnectorOperator
from sluiceway.sensors import ConnectorLagSensor

_HOME = Path(os.environ.get("AIRFLOW_HOME") or "~/airflow").expanduser()
_TOPIC = os.environ.get("SLUICEWAY_EXAMPLE_WATCHED_TOPIC", "connect-test")
_FILE = os.environ.get("SLUICEWAY_EXAMPLE_WATCHED_FILE", str(_HOME / "watched.txt"))
_CONNECTOR = "example-watched"
_PATIENCE = timedelta(minutes=10)

log = logging.getLogger(__name__)


class LogNotifier(BaseNotifier):
    """Logs a message, where other notifiers send it."""

    template_fields = ("message",)

    def __init__(self, message: str) -> None:
        super().__init__()
        self.message = message

    def notify(self, context: Any) -> None:
        log.error("%s", self.message)


async def tell_late(context: Any = None, connector: str = "") -> None:
    """Log that a deadline was missed. Runs in the triggerer."""
    log.error("Connector %s is late", connector)


with DAG(
    dag_id="example_watch_progress",
    description="Runs a sink and tells when it stands still",
    schedule="@continuous",
    start_date=pendulum.datetime(2024, 1, 1, tz="UTC"),
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=True,
    tags=["sluiceway", "example"],
    doc_md=__doc__,
) as dag:
    SinkConnectorOperator(
        task_id="run",
        config={"name": _CONNECTOR, "connector.class": "FileStreamSink", "file": _FILE, "topics": _TOPIC},
        no_progress_after=_PATIENCE,
        on_no_progress_callback=LogNotifier("{{ reason }}"),
        on_failure_callback=LogNotifier("The task of connector {{ task.connector }} failed"),
    )

with DAG(
    dag_id="example_watch_deadline",
    description="Tells when a sink does not catch up within ten minutes",
    schedule=_PATIENCE,
    start_date=pendulum.datetime(2024, 1, 1, tz="UTC"),
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=True,
    tags=["sluiceway", "example"],
    deadline=DeadlineAlert(
        reference=DeadlineReference.DAGRUN_QUEUED_AT,
        interval=_PATIENCE,
        callback=AsyncCallback(tell_late, kwargs={"connector": _CONNECTOR}),
    ),
) as watching:
    ConnectorLagSensor(task_id="catches_up", connector=_CONNECTOR, at_most=1000, deferrable=True, timeout=3600)
