"""A table kept in step with a topic: each record adds or changes the row of its key, a tombstone deletes it.

Runs until the DAG is paused; a record is in the table within a second. Offsets are stored with the rows, so whatever ends the
run, the next one goes on with each record applied once. Parsing this file needs neither Kafka nor Spark nor the database. Where
things are comes from the environment of the DAG processor and the Airflow workers:

``SLUICEWAY_EXAMPLE_TARGET``  the database's JDBC URL; default is the SQLite file ``example-target.db`` in AIRFLOW_HOME
``SLUICEWAY_EXAMPLE_TOPICS``  the topics, each of which has a table of its name; default ``example-people``

Records need schemas, as JsonConverter writes them by default, and keys that are structs. A user and a password would be named by
reference, with the keys ``connection.user`` and ``connection.password``; see the user guide.
"""

from __future__ import annotations

import os
from pathlib import Path

import pendulum
from airflow.sdk import DAG

from sluiceway.operators import SinkConnectorOperator

_HOME = Path(os.environ.get("AIRFLOW_HOME") or "~/airflow").expanduser()
_DATABASE = os.environ.get("SLUICEWAY_EXAMPLE_TARGET", f"jdbc:sqlite:{_HOME / 'example-target.db'}")
_TOPICS = os.environ.get("SLUICEWAY_EXAMPLE_TOPICS", "example-people")

with DAG(
    dag_id="example_topics_to_database",
    description="Tables of a database kept in step with topics",
    schedule="@continuous",
    start_date=pendulum.datetime(2024, 1, 1, tz="UTC"),
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=True,
    tags=["sluiceway", "example"],
    doc_md=__doc__,
) as dag:
    SinkConnectorOperator(
        task_id="topics_to_database",
        config={
            "name": "example-database-sink",
            "connector.class": "JdbcSink",
            "tasks.max": "1",
            "topics": _TOPICS,
            "key.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "connection.url": _DATABASE,
            "insert.mode": "upsert",
            "pk.mode": "record_key",
            "delete.enabled": "true",
            "auto.create": "true",
            "auto.evolve": "true",
        },
    )
