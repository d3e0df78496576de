"""Applies a topic's records to a table: a record inserts or updates the row with its key, a tombstone deletes it.

Runs until the DAG is paused, and applies a record within a second. The sink stores offsets in the same database transaction as
the rows, so each record is applied exactly once. Parsing this file needs neither Kafka, Spark nor the database. The addresses
come from environment variables of the DAG processor and the Airflow workers:

``SLUICEWAY_EXAMPLE_TARGET``  the database's JDBC URL; default is the SQLite file ``example-target.db`` in AIRFLOW_HOME
``SLUICEWAY_EXAMPLE_TOPICS``  the topics, which are also the tables' names; default ``example-people``

Records need schemas, as JsonConverter writes them by default, and structs as keys. To log in, set ``connection.user`` and
``connection.password`` to references such as ``${airflow:conn_id:password}``.
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
    description="Upserts and deletes from topics into a database's tables",
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
