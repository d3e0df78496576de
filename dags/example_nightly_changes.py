"""Copies the changes of a MariaDB database to topics each night: a micro-batch reads the log up to its end and ends.

The first run reads the tables, each later run what has changed since the run before. The server must keep its binary log longer
than the time between two runs (``expire_logs_days``). Parsing this file needs neither Kafka, Spark nor the database. The
addresses come from environment variables of the DAG processor and the Airflow workers:

``SLUICEWAY_EXAMPLE_MARIADB_HOST``    the server; default ``localhost``
``SLUICEWAY_EXAMPLE_MARIADB_PORT``    its port; default 3306
``SLUICEWAY_EXAMPLE_MARIADB_NAME``    the database; default ``shop``
``SLUICEWAY_EXAMPLE_MARIADB_CONN``    the Airflow connection with user and password; default ``shop_mariadb``
``SLUICEWAY_EXAMPLE_BOOTSTRAP``       the brokers of the schema history topic; default ``localhost:9092``
"""

from __future__ import annotations

import os

import pendulum
from airflow.sdk import DAG

from sluiceway.operators import SourceConnectorOperator

_CONNECTION = os.environ.get("SLUICEWAY_EXAMPLE_MARIADB_CONN", "shop_mariadb")

with DAG(
    dag_id="example_nightly_changes",
    description="The changes of a MariaDB database to topics, every night",
    schedule="0 3 * * *",
    start_date=pendulum.datetime(2024, 1, 1, tz="UTC"),
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=True,
    tags=["sluiceway", "example"],
    doc_md=__doc__,
) as dag:
    SourceConnectorOperator(
        task_id="nightly_changes",
        config={
            "name": "example-nightly-changes",
            "connector.class": "io.debezium.connector.mariadb.MariaDbConnector",
            "airflow.mode": "micro-batch",
            "database.hostname": os.environ.get("SLUICEWAY_EXAMPLE_MARIADB_HOST", "localhost"),
            "database.port": os.environ.get("SLUICEWAY_EXAMPLE_MARIADB_PORT", "3306"),
            "database.user": f"${{airflow:{_CONNECTION}:login}}",
            "database.password": f"${{airflow:{_CONNECTION}:password}}",
            "database.server.id": "58001",
            "database.include.list": os.environ.get("SLUICEWAY_EXAMPLE_MARIADB_NAME", "shop"),
            "topic.prefix": "example-nightly",
            "schema.history.internal.kafka.bootstrap.servers": os.environ.get("SLUICEWAY_EXAMPLE_BOOTSTRAP", "localhost:9092"),
            "schema.history.internal.kafka.topic": "example-nightly-history",
        },
    )
