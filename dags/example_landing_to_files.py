"""File landing to topic to files, by schedule: each day's file goes into a topic, and from there into a file of that day.

Both connectors move what is there and end, so between two runs nothing runs and nothing is paid for. The names of the files are
templates: a connector keeps its place for each file, so a run that is repeated moves only what has been added since. A day
without a file moves nothing. Parsing this file needs neither Kafka nor Spark.

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

# A run that is started by hand has no logical date; every run has the day after which it may run.
_FILE = "{{ dag_run.run_after | ds }}.txt"

with DAG(
    dag_id="example_landing_to_files",
    description="Each day's landed file through a topic into a file of that day",
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
