"""Kafka Connect's quickstart as one hand-written DAG: copies a file's lines to a topic, and from there to another file.

Both connectors run until the DAG is paused, and copy appended lines within a second. Parsing this file needs neither Kafka nor
Spark. Paths and topic come from environment variables of the DAG processor and the Airflow workers:

``SLUICEWAY_EXAMPLE_SOURCE``  the file to read; default ``test.txt`` in AIRFLOW_HOME
``SLUICEWAY_EXAMPLE_SINK``    the file to write; default ``test.sink.txt`` in AIRFLOW_HOME
``SLUICEWAY_EXAMPLE_TOPIC``   the topic between them; default ``connect-test``
"""

from __future__ import annotations

import os
from pathlib import Path

import pendulum
from airflow.sdk import DAG

from sluiceway.operators import SinkConnectorOperator, SourceConnectorOperator

_HOME = Path(os.environ.get("AIRFLOW_HOME") or "~/airflow").expanduser()
_SOURCE = os.environ.get("SLUICEWAY_EXAMPLE_SOURCE", str(_HOME / "test.txt"))
_SINK = os.environ.get("SLUICEWAY_EXAMPLE_SINK", str(_HOME / "test.sink.txt"))
_TOPIC = os.environ.get("SLUICEWAY_EXAMPLE_TOPIC", "connect-test")

with DAG(
    dag_id="example_file_to_file",
    description="Kafka Connect's quickstart: a file through a topic to a file",
    schedule="@continuous",
    start_date=pendulum.datetime(2024, 1, 1, tz="UTC"),
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=True,
    tags=["sluiceway", "example"],
    doc_md=__doc__,
) as dag:
    SourceConnectorOperator(
        task_id="file_to_topic",
        config={
            "name": "example-file-source",
            "connector.class": "FileStreamSource",
            "tasks.max": "1",
            "file": _SOURCE,
            "topic": _TOPIC,
        },
    )
    SinkConnectorOperator(
        task_id="topic_to_file",
        config={
            "name": "example-file-sink",
            "connector.class": "FileStreamSink",
            "tasks.max": "1",
            "file": _SINK,
            "topics": _TOPIC,
        },
    )
