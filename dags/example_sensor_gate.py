"""A pipeline behind a gate: what others write into a topic is collected and counted as soon as there is something new.

The sensor waits until the topic has a record from the run's time on; it holds no worker slot while it waits. Then a sink moves
what is in the topic into a file and ends, and a task of plain Python works on the file.

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
    description="Collects and counts what was written into a topic, once there is something new",
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
        """Return the number of lines collected so far. Runs on an Airflow worker, which must see the file."""
        with Path(path).open(encoding="utf-8") as lines:
            return sum(1 for _ in lines)

    gate >> collect >> count(_COLLECTED)
