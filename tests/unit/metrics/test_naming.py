"""Names in Prometheus that public boards query."""

from __future__ import annotations

import pytest

from sluiceway.metrics.catalog import METRICS
from sluiceway.metrics.naming import Naming, metric_name


@pytest.mark.parametrize(
    "name",
    # What Strimzi's board and its alerts query, and Confluent's board for sinks and sources.
    [
        "kafka_connect_worker_connector_count",
        "kafka_connect_worker_task_count",
        "kafka_connect_worker_connector_failed_task_count",
        "kafka_connect_sink_task_sink_record_read_rate",
        "kafka_connect_source_task_source_record_poll_rate",
        "kafka_connect_task_error_total_records_skipped",
        "kafka_consumer_incoming_byte_total",
        "kafka_producer_outgoing_byte_total",
        "kafka_connect_sink_task_metrics_sink_record_send_total",
        "kafka_connect_connector_task_metrics_batch_size_avg",
        "kafka_connect_connect_worker_metrics_connector_count",
    ],
)
def test_the_names_that_boards_query_exist(name: str) -> None:
    made = {
        metric_name(domain, kind, attribute, naming)
        for (domain, kind), attributes in METRICS.items()
        for attribute in attributes
        for naming in Naming
    }
    assert name in made
