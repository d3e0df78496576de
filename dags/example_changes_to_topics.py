"""Captures the changes of a PostgreSQL database in topics: a snapshot of its tables first, then each insert, update, and delete.

Runs until the DAG is paused. Parsing this file needs neither Kafka, Spark nor the database. The addresses come from environment
variables of the DAG processor and the Airflow workers:

``SLUICEWAY_EXAMPLE_PG_HOST``    the server; default ``localhost``
``SLUICEWAY_EXAMPLE_PG_PORT``    its port; default 5432
``SLUICEWAY_EXAMPLE_PG_NAME``    the database; default ``shop``
``SLUICEWAY_EXAMPLE_PG_TABLES``  regular expressions of the tables; default is all tables of the schema public
``SLUICEWAY_EXAMPLE_PG_CONN``    the Airflow connection with user and password; default ``shop_db``

The server needs ``wal_level=logical``, and the user the attribute REPLICATION and the right to read the tables. The connector
creates a publication of these tables and a slot, which keeps the log while the DAG is paused: drop the slot when you no longer
need it.
"""

from __future__ import annotations

import os

import pendulum
from airflow.sdk import DAG

from sluiceway.operators import SourceConnectorOperator

_CONNECTION = os.environ.get("SLUICEWAY_EXAMPLE_PG_CONN", "shop_db")

with DAG(
    dag_id="example_changes_to_topics",
    description="The changes of a PostgreSQL database to topics",
    schedule="@continuous",
    start_date=pendulum.datetime(2024, 1, 1, tz="UTC"),
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=True,
    tags=["sluiceway", "example"],
    doc_md=__doc__,
) as dag:
    SourceConnectorOperator(
        task_id="changes_to_topics",
        config={
            "name": "example-changes-source",
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "database.hostname": os.environ.get("SLUICEWAY_EXAMPLE_PG_HOST", "localhost"),
            "database.port": os.environ.get("SLUICEWAY_EXAMPLE_PG_PORT", "5432"),
            "database.dbname": os.environ.get("SLUICEWAY_EXAMPLE_PG_NAME", "shop"),
            "database.user": f"${{airflow:{_CONNECTION}:login}}",
            "database.password": f"${{airflow:{_CONNECTION}:password}}",
            "table.include.list": os.environ.get("SLUICEWAY_EXAMPLE_PG_TABLES", r"public\..*"),
            "topic.prefix": "example-changes",
            "slot.name": "example_changes",
            "publication.name": "example_changes",
            "publication.autocreate.mode": "filtered",
            "heartbeat.interval.ms": "10000",
        },
    )
