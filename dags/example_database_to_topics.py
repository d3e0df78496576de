"""A database bridged to Kafka every night: what is new in each table goes into a topic of its own, and the run ends.

Each run goes on behind the last row of the run before. Parsing this file needs neither Kafka nor Spark nor the database. Where
things are comes from the environment of the DAG processor and the Airflow workers:

``SLUICEWAY_EXAMPLE_DATABASE``  the database's JDBC URL; default is the SQLite file ``example.db`` in AIRFLOW_HOME
``SLUICEWAY_EXAMPLE_PREFIX``    what the topics' names begin with; default ``example-db-``

A user and a password would be named by reference, with the keys ``connection.user`` and ``connection.password``; see the user
guide. The tables of this example have a column ``id`` that grows.
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
    description="The new rows of all tables of a database into topics, every night",
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
