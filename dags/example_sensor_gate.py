"""Waits until a topic has new records, then collects them in a file and counts them.

The sensor waits for a record with a timestamp after the start of the run's data interval; it holds no worker slot. Then a sink
moves the available records to a file and ends, and a Python task reads the file.

``SLUICEWAY_EXAMPLE_TOPIC``      the topic to watch; default ``connect-test``, which ``example_file_to_file`` writes
``SLUICEWAY_EXAMPLE_COLLECTED``  the file to collect into; default ``collected.txt`` in AIRFLOW_HOME
"""

from __future__ import annotations

import os
from pathlib import Path

import pendulum
from airflow.sdk import DAG, task

from sluiceway.operators import SinkConnectorOperator
from sluiceway.sensors import TopicRecordsSensor

_HOME = Path(os.environ.get("AIRFLOW_HOME") or "~/airflow").expanduser()
_TOPIC = os.environ.get("SLUICEWAY_EXAMPLE_TOPIC", "connect-test")
_COLLECTED = os.environ.get("SLUICEWAY_EXAMPLE_COLLECTED", str(_HOME / "collected.txt"))

with DAG(
    dag_id="example_sensor_gate",
    description="Collects and counts a topic's records, once it has new ones",
    schedule="@hourly",
    start_date=pendulum.datetime(2024, 1, 1, tz="UTC"),
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=True,
    tags=["sluiceway", "example"],
    doc_md=__doc__,
) as dag:
    gate = TopicRecordsSensor(task_id="gate", topic=_TOPIC, timeout=3600)
    collect = SinkConnectorOperator(
        task_id="collect",
        config={
            "name": "example-collect",
            "connector.class": "FileStreamSink",
            "airflow.mode": "micro-batch",
            "file": _COLLECTED,
            "topics": _TOPIC,
        },
    )

    @task
    def count(path: str) -> int:
        """Return the number of lines in the file, which must be on the Airflow worker that runs the task."""
        with Path(path).open(encoding="utf-8") as lines:
            return sum(1 for _ in lines)

    gate >> collect >> count(_COLLECTED)
