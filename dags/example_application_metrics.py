"""Scrapes the metrics of applications into a topic, until the DAG is paused.

Parsing this file needs neither Kafka nor Spark. The values come from environment variables of the DAG processor and the Airflow
workers:

``SLUICEWAY_EXAMPLE_TARGETS``        hosts with ports, or URLs, that expose metrics as Prometheus does; default ``localhost:8000``
``SLUICEWAY_EXAMPLE_METRICS_TOPIC``  the topic of the records; default ``app-metrics``

While the DAG is paused nothing is scraped. The first records after that have ``gap_since``, when the last scrape began.
"""

from __future__ import annotations

import os

import pendulum
from airflow.sdk import DAG

from sluiceway.operators import SourceConnectorOperator

with DAG(
    dag_id="example_application_metrics",
    description="The metrics of applications to a topic",
    schedule="@continuous",
    start_date=pendulum.datetime(2024, 1, 1, tz="UTC"),
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=True,
    tags=["sluiceway", "example"],
    doc_md=__doc__,
) as dag:
    SourceConnectorOperator(
        task_id="scrape",
        config={
            "name": "example-application-metrics",
            "connector.class": "PrometheusSource",
            "targets": os.environ.get("SLUICEWAY_EXAMPLE_TARGETS", "localhost:8000"),
            "topic": os.environ.get("SLUICEWAY_EXAMPLE_METRICS_TOPIC", "app-metrics"),
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "false",
        },
    )
