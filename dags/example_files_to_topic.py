"""Reads the CSV files that were delivered to a folder into a topic, every quarter of an hour, and moves them to another folder.

A file that is there under its name is complete: programs write to a name that ends with ``.tmp`` first. It is moved when all of
its rows are in the topic. A run that is ended in the middle of a file is continued by the next one. Parsing this file needs
neither Kafka nor Spark.

``SLUICEWAY_EXAMPLE_INBOX``  the folder where files are delivered; default ``inbox`` in AIRFLOW_HOME
``SLUICEWAY_EXAMPLE_DONE``   the folder to which they are moved; default ``done`` in AIRFLOW_HOME
``SLUICEWAY_EXAMPLE_TOPIC``  the topic; default ``deliveries``
"""

from __future__ import annotations

import os
from pathlib import Path

import pendulum
from airflow.sdk import DAG

from sluiceway.operators import SourceConnectorOperator

_HOME = Path(os.environ.get("AIRFLOW_HOME") or "~/airflow").expanduser()
_INBOX = os.environ.get("SLUICEWAY_EXAMPLE_INBOX", str(_HOME / "inbox"))
_DONE = os.environ.get("SLUICEWAY_EXAMPLE_DONE", str(_HOME / "done"))
_TOPIC = os.environ.get("SLUICEWAY_EXAMPLE_TOPIC", "deliveries")

with DAG(
    dag_id="example_files_to_topic",
    description="Delivered CSV files into a topic, and then to another folder",
    schedule="*/15 * * * *",
    start_date=pendulum.datetime(2024, 1, 1, tz="UTC"),
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=True,
    tags=["sluiceway", "example"],
    doc_md=__doc__,
) as dag:
    SourceConnectorOperator(
        task_id="publish",
        config={
            "name": "example-files-source",
            "connector.class": "FolderSource",
            "airflow.mode": "micro-batch",
            "paths": f"{_INBOX}/**/*.csv",
            "mode": "files",
            "format": "csv",
            "complete.when": "renamed",
            "after.read": "move",
            "after.read.folder": _DONE,
            "topic": _TOPIC,
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": False,
        },
    )
