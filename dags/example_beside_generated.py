"""A hand-written DAG that runs the generated DAG of a connector as one of its steps.

The connector is created by REST or with ``sluiceway apply``, so its DAG is generated from the config topic, and its owner can
change the config without changing this DAG. It must be a micro-batch without a schedule, for example:

``{"name": "example-export", "connector.class": "FileStreamSink", "topics": "connect-test", "file": "/data/export.txt",
"airflow.mode": "micro-batch"}``

``SLUICEWAY_EXAMPLE_GENERATED``  the id of the generated DAG, which is the connector's name; default ``example-export``
``SLUICEWAY_EXAMPLE_EXPORT``     the file that the connector writes; default ``export.txt`` in AIRFLOW_HOME
"""

from __future__ import annotations

import os
from pathlib import Path

import pendulum
from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import DAG, task

_HOME = Path(os.environ.get("AIRFLOW_HOME") or "~/airflow").expanduser()
_GENERATED = os.environ.get("SLUICEWAY_EXAMPLE_GENERATED", "example-export")
_EXPORT = os.environ.get("SLUICEWAY_EXAMPLE_EXPORT", str(_HOME / "export.txt"))

with DAG(
    dag_id="example_beside_generated",
    description="Runs a generated connector DAG as one of its steps, and sorts the file that it wrote",
    schedule=None,
    start_date=pendulum.datetime(2024, 1, 1, tz="UTC"),
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=True,
    tags=["sluiceway", "example"],
    doc_md=__doc__,
) as dag:
    export = TriggerDagRunOperator(
        task_id="export",
        trigger_dag_id=_GENERATED,
        wait_for_completion=True,
        poke_interval=5,
        allowed_states=["success"],
        failed_states=["failed"],
    )

    @task
    def sort(path: str) -> str:
        """Write the exported lines, sorted, to a file beside the export; return its path. Runs on an Airflow worker."""
        exported = Path(path)
        ordered = exported.with_suffix(".sorted")
        ordered.write_text("".join(sorted(exported.read_text(encoding="utf-8").splitlines(keepends=True))), encoding="utf-8")
        return str(ordered)

    export >> sort(_EXPORT)
