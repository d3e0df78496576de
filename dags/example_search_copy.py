"""Copies the new and changed documents of an index of Elasticsearch to OpenSearch, through a topic, every ten minutes.

The first run copies all documents. The copy has the ids of the documents; deletes are not copied, because a search does not find
them. Parsing this file needs neither Kafka, Spark nor a server. The values come from environment variables of the DAG processor
and the Airflow workers:

``SLUICEWAY_EXAMPLE_SEARCH_FROM``   the URL of Elasticsearch; default ``http://localhost:9200``
``SLUICEWAY_EXAMPLE_SEARCH_INDEX``  its index; default ``orders``
``SLUICEWAY_EXAMPLE_SEARCH_TO``     the URL of OpenSearch; default ``http://localhost:9201``

The topic and the index of the copy are ``example-search-`` and the index. To log in, set ``connection.username`` and
``connection.password`` to references such as ``${airflow:conn_id:password}``.
"""

from __future__ import annotations

import os

import pendulum
from airflow.sdk import DAG

from sluiceway.operators import SinkConnectorOperator, SourceConnectorOperator

_INDEX = os.environ.get("SLUICEWAY_EXAMPLE_SEARCH_INDEX", "orders")
_PREFIX = "example-search-"
_CONVERTERS = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}

with DAG(
    dag_id="example_search_copy",
    description="New and changed documents of Elasticsearch to OpenSearch",
    schedule="*/10 * * * *",
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
            "name": "example-search-source",
            "connector.class": "ElasticsearchSource",
            "airflow.mode": "micro-batch",
            "connection.url": os.environ.get("SLUICEWAY_EXAMPLE_SEARCH_FROM", "http://localhost:9200"),
            "index": _INDEX,
            "topic.prefix": _PREFIX,
            **_CONVERTERS,
        },
    )
    copy = SinkConnectorOperator(
        task_id="copy",
        config={
            "name": "example-search-sink",
            "connector.class": "OpenSearchSink",
            "airflow.mode": "micro-batch",
            "connection.url": os.environ.get("SLUICEWAY_EXAMPLE_SEARCH_TO", "http://localhost:9201"),
            "topics": f"{_PREFIX}{_INDEX}",
            **_CONVERTERS,
        },
    )
    publish >> copy
