"""Copies each day's landed file to a topic, and from there to a file of that day, by schedule.

Both connectors move the available records and end, so no machine is needed between two runs. The file names are templates. A
connector stores an offset for each file, so a repeated run moves only records added since. A day without a file moves nothing.
Parsing this file needs neither Kafka nor Spark.

``SLUICEWAY_EXAMPLE_LANDING``    the folder where ``YYYY-MM-DD.txt`` files land; default ``landing`` in AIRFLOW_HOME
``SLUICEWAY_EXAMPLE_DELIVERED``  the folder where they are delivered, which must exist; default ``delivered`` in AIRFLOW_HOME
``SLUICEWAY_EXAMPLE_TOPIC``      the topic between them; default ``landing``
"""

from __future__ import annotations

import os
from pathlib import Path

import pendulum
from airflow.sdk import DAG

from sluiceway.operators import SinkConnectorOperator, SourceConnectorOperator

_HOME = Path(os.environ.get("AIRFLOW_HOME") or "~/airflow").expanduser()
_LANDING = os.environ.get("SLUICEWAY_EXAMPLE_LANDING", str(_HOME / "landing"))
_DELIVERED = os.environ.get("SLUICEWAY_EXAMPLE_DELIVERED", str(_HOME / "delivered"))
_TOPIC = os.environ.get("SLUICEWAY_EXAMPLE_TOPIC", "landing")

# A manually triggered run has no logical date, but every run has run_after.
_FILE = "{{ dag_run.run_after | ds }}.txt"

with DAG(
    dag_id="example_landing_to_files",
    description="Each day's landed file through a topic to a file of that day",
    schedule="@daily",
    start_date=pendulum.datetime(2024, 1, 1, tz="UTC"),
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=True,
    tags=["sluiceway", "example"],
    doc_md=__doc__,
) as dag:
    publish = SourceConnectorOperator(
        task_id="publish",
        config={
            "name": "example-landing-source",
            "connector.class": "FileStreamSource",
            "airflow.mode": "micro-batch",
            "file": f"{_LANDING}/{_FILE}",
            "topic": _TOPIC,
        },
    )
    deliver = SinkConnectorOperator(
        task_id="deliver",
        config={
            "name": "example-landing-sink",
            "connector.class": "FileStreamSink",
            "airflow.mode": "micro-batch",
            "file": f"{_DELIVERED}/{_FILE}",
            "topics": _TOPIC,
        },
    )
    publish >> deliver
