"""Copies the new rows of every table of a database to Kafka each night, one topic for each table.

Each run continues after the last row of the previous run. Parsing this file needs neither Kafka, Spark nor the database. The
addresses come from environment variables of the DAG processor and the Airflow workers:

``SLUICEWAY_EXAMPLE_DATABASE``  the database's JDBC URL; default is the SQLite file ``example.db`` in AIRFLOW_HOME
``SLUICEWAY_EXAMPLE_PREFIX``    the prefix of the topics' names; default ``example-db-``

To log in, set ``connection.user`` and ``connection.password`` to references such as ``${airflow:conn_id:password}``. The
tables of this example need a column ``id`` with increasing values.
"""

from __future__ import annotations

import os
from pathlib import Path

import pendulum
from airflow.sdk import DAG

from sluiceway.operators import SourceConnectorOperator

_HOME = Path(os.environ.get("AIRFLOW_HOME") or "~/airflow").expanduser()
_DATABASE = os.environ.get("SLUICEWAY_EXAMPLE_DATABASE", f"jdbc:sqlite:{_HOME / 'example.db'}")
_PREFIX = os.environ.get("SLUICEWAY_EXAMPLE_PREFIX", "example-db-")

with DAG(
    dag_id="example_database_to_topics",
    description="The new rows of all tables of a database to topics, every night",
    schedule="0 2 * * *",
    start_date=pendulum.datetime(2024, 1, 1, tz="UTC"),
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=True,
    tags=["sluiceway", "example"],
    doc_md=__doc__,
) as dag:
    SourceConnectorOperator(
        task_id="database_to_topics",
        config={
            "name": "example-database-source",
            "connector.class": "JdbcSource",
            "airflow.mode": "micro-batch",
            "tasks.max": "4",
            "connection.url": _DATABASE,
            "mode": "incrementing",
            "incrementing.column.name": "id",
            "topic.prefix": _PREFIX,
            "batch.max.rows": "1000",
        },
    )
