"""Copies the new rows of a table of HBase to a topic, and from there to another table, every hour.

The first run copies the whole table, each later one the rows that were written since. Deletions are not copied, because
a scan by time does not find them. Parsing this file needs neither Kafka, Spark nor HBase. The values come from environment
variables of the DAG processor and the Airflow workers:

``SLUICEWAY_EXAMPLE_HBASE``             the Thrift 2 servers of the table; default ``localhost:9090``
``SLUICEWAY_EXAMPLE_HBASE_TABLE``       the table, whose row keys and cells are UTF-8 text; default ``orders``
``SLUICEWAY_EXAMPLE_HBASE_TOPIC``       the topic between them; default ``example-hbase``
``SLUICEWAY_EXAMPLE_HBASE_COPY``        the Thrift 2 servers of the copy; default are those of the table
``SLUICEWAY_EXAMPLE_HBASE_COPY_TABLE``  the copy, which must exist with the table's column families; default ``orders_copy``
"""

from __future__ import annotations

import os

import pendulum
from airflow.sdk import DAG

from sluiceway.operators import SinkConnectorOperator, SourceConnectorOperator

_SERVERS = os.environ.get("SLUICEWAY_EXAMPLE_HBASE", "localhost:9090")
_TOPIC = os.environ.get("SLUICEWAY_EXAMPLE_HBASE_TOPIC", "example-hbase")
_CONVERTERS = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}

with DAG(
    dag_id="example_hbase_copy",
    description="The rows of a table of HBase to a topic, and to another table",
    schedule="@hourly",
    start_date=pendulum.datetime(2024, 1, 1, tz="UTC"),
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=True,
    tags=["sluiceway", "example"],
    doc_md=__doc__,
) as dag:
    publish = SourceConnectorOperator(
        task_id="publish",
        config={
            "name": "example-hbase-source",
            "connector.class": "HBaseSource",
            "airflow.mode": "micro-batch",
            "tasks.max": "4",
            "hbase.thrift.servers": _SERVERS,
            "hbase.table": os.environ.get("SLUICEWAY_EXAMPLE_HBASE_TABLE", "orders"),
            "topic": _TOPIC,
            **_CONVERTERS,
        },
    )
    copy = SinkConnectorOperator(
        task_id="copy",
        config={
            "name": "example-hbase-sink",
            "connector.class": "HBaseSink",
            "airflow.mode": "micro-batch",
            "topics": _TOPIC,
            "hbase.thrift.servers": os.environ.get("SLUICEWAY_EXAMPLE_HBASE_COPY", _SERVERS),
            "hbase.table": os.environ.get("SLUICEWAY_EXAMPLE_HBASE_COPY_TABLE", "orders_copy"),
            **_CONVERTERS,
        },
    )
    publish >> copy
