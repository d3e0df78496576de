"""Keeps tables in step with a PostgreSQL database: captures its changes, and applies them as upserts and deletes.

Runs until the DAG is paused. The source writes the row after each change (``ExtractNewRecordState``), and a tombstone for each
delete. The sink stores its offsets in the same transaction as the rows. Parsing this file needs neither Kafka, Spark nor the
databases. Addresses come from environment variables of the DAG processor and the Airflow workers:

``SLUICEWAY_EXAMPLE_PG_HOST``    the source's server; default ``localhost``
``SLUICEWAY_EXAMPLE_PG_PORT``    its port; default 5432
``SLUICEWAY_EXAMPLE_PG_NAME``    the source's database; default ``shop``
``SLUICEWAY_EXAMPLE_PG_TABLES``  regular expressions of its tables; default ``public.customers``
``SLUICEWAY_EXAMPLE_PG_CONN``    the Airflow connection with the source's user and password; default ``shop_db``
``SLUICEWAY_EXAMPLE_TARGET``     the target's JDBC URL; default is the SQLite file ``example-copy.db`` in AIRFLOW_HOME

The tables need primary keys. Each becomes a table ``copy_<schema>_<table>`` of the target, which is created and gets new columns.
"""

from __future__ import annotations

import os
from pathlib import Path

import pendulum
from airflow.sdk import DAG

from sluiceway.operators import SinkConnectorOperator, SourceConnectorOperator

_HOME = Path(os.environ.get("AIRFLOW_HOME") or "~/airflow").expanduser()
_TARGET = os.environ.get("SLUICEWAY_EXAMPLE_TARGET", f"jdbc:sqlite:{_HOME / 'example-copy.db'}")
_CONNECTION = os.environ.get("SLUICEWAY_EXAMPLE_PG_CONN", "shop_db")
_JSON = {
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
}

with DAG(
    dag_id="example_changes_to_table",
    description="Tables that follow a PostgreSQL database",
    schedule="@continuous",
    start_date=pendulum.datetime(2024, 1, 1, tz="UTC"),
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=True,
    tags=["sluiceway", "example"],
    doc_md=__doc__,
) as dag:
    SourceConnectorOperator(
        task_id="capture",
        config={
            "name": "example-copy-source",
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "database.hostname": os.environ.get("SLUICEWAY_EXAMPLE_PG_HOST", "localhost"),
            "database.port": os.environ.get("SLUICEWAY_EXAMPLE_PG_PORT", "5432"),
            "database.dbname": os.environ.get("SLUICEWAY_EXAMPLE_PG_NAME", "shop"),
            "database.user": f"${{airflow:{_CONNECTION}:login}}",
            "database.password": f"${{airflow:{_CONNECTION}:password}}",
            "table.include.list": os.environ.get("SLUICEWAY_EXAMPLE_PG_TABLES", "public.customers"),
            "topic.prefix": "copy",
            "slot.name": "example_copy",
            "publication.name": "example_copy",
            "publication.autocreate.mode": "filtered",
            "time.precision.mode": "connect",
            "transforms": "rows,name",
            "transforms.rows.type": "io.debezium.transforms.ExtractNewRecordState",
            "transforms.name.type": "org.apache.kafka.connect.transforms.RegexRouter",
            "transforms.name.regex": r"copy\.([^.]+)\.(.+)",
            "transforms.name.replacement": "copy_$1_$2",
            **_JSON,
        },
    )
    SinkConnectorOperator(
        task_id="apply",
        config={
            "name": "example-copy-sink",
            "connector.class": "JdbcSink",
            "tasks.max": "1",
            "topics.regex": "copy_.*",
            "connection.url": _TARGET,
            "insert.mode": "upsert",
            "pk.mode": "record_key",
            "delete.enabled": "true",
            "auto.create": "true",
            "auto.evolve": "true",
            **_JSON,
        },
    )
