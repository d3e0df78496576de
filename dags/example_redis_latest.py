"""Copies the new entries of a Redis stream to a topic, and each customer's newest one to a hash, every five minutes.

The topic keeps all entries, also those that Redis trims later. The hash ``customer:7`` has the fields of the newest entry whose
field ``customer`` is ``7``. Parsing this file needs neither Kafka, Spark nor Redis. The values come from environment variables of
the DAG processor and the Airflow workers:

``SLUICEWAY_EXAMPLE_REDIS``         the URI of Redis; default ``redis://localhost:6379/0``
``SLUICEWAY_EXAMPLE_REDIS_STREAM``  the stream; default ``orders``
``SLUICEWAY_EXAMPLE_REDIS_TOPIC``   the topic; default ``example-redis``

To log in, set ``redis.username`` and ``redis.password`` to references such as ``${airflow:conn_id:password}``.
"""

from __future__ import annotations

import os

import pendulum
from airflow.sdk import DAG

from sluiceway.operators import SinkConnectorOperator, SourceConnectorOperator

_TOPIC = os.environ.get("SLUICEWAY_EXAMPLE_REDIS_TOPIC", "example-redis")
_COMMON = {
    "airflow.mode": "micro-batch",
    "redis.uri": os.environ.get("SLUICEWAY_EXAMPLE_REDIS", "redis://localhost:6379/0"),
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}

with DAG(
    dag_id="example_redis_latest",
    description="The entries of a Redis stream to a topic, and the newest ones to hashes",
    schedule="*/5 * * * *",
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
            "name": "example-redis-source",
            "connector.class": "RedisStreamSource",
            "redis.stream.name": os.environ.get("SLUICEWAY_EXAMPLE_REDIS_STREAM", "orders"),
            "topic": _TOPIC,
            **_COMMON,
        },
    )
    latest = SinkConnectorOperator(
        task_id="latest",
        config={
            "name": "example-redis-sink",
            "connector.class": "RedisSink",
            "topics": _TOPIC,
            "redis.command": "HSET",
            "redis.key": "customer",
            "transforms": "body,key,customer",
            "transforms.body.type": "org.apache.kafka.connect.transforms.ExtractField$Value",
            "transforms.body.field": "body",
            "transforms.key.type": "org.apache.kafka.connect.transforms.ValueToKey",
            "transforms.key.fields": "customer",
            "transforms.customer.type": "org.apache.kafka.connect.transforms.ExtractField$Key",
            "transforms.customer.field": "customer",
            **_COMMON,
        },
    )
    publish >> latest
