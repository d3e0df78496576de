"""The text for Prometheus, and the names in it."""

from __future__ import annotations

from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse

from sluiceway.metrics.beans import CONNECT, OWN, Bean
from sluiceway.metrics.exposition import render
from sluiceway.metrics.naming import Naming

TASK = {"connector": "lines", "task": "0"}
BEANS = [
    Bean(CONNECT, "source-task-metrics", TASK, {"source-record-write-total": 7.0, "poll-batch-avg-time-ms": float("nan")}),
    Bean(CONNECT, "connector-task-metrics", TASK, {"status": "running", "pause-ratio": 0.5}),
    Bean(CONNECT, "connector-metrics", {"connector": "lines"}, {"connector-class": 'Li"nes', "status": "paused"}),
    Bean(CONNECT, "connect-worker-metrics", {}, {"task-count": 3.0}),
    Bean(CONNECT, "connect-worker-metrics", {"connector": "lines"}, {"connector-failed-task-count": 1.0}),
    Bean(CONNECT, "task-error-metrics", TASK, {"total-record-errors": 2.0}),
    Bean("kafka.consumer", "consumer-metrics", {"client-id": "c"}, {"incoming-byte-total": 9.0}),
    Bean(
        "kafka.consumer",
        "consumer-fetch-manager-metrics",
        {"client-id": "c", "topic": "t", "partition": "1"},
        {"records-lag": 4.0},
    ),
    Bean(OWN, "task-state-metrics", {**TASK, "state": "running"}, {"seconds-total": 8.0}),
]


def samples(text: bytes) -> dict[str, tuple[dict[str, str], float]]:
    return {sample.name: (sample.labels, sample.value) for family in parse(text.decode()) for sample in family.samples}


def test_the_names_of_strimzi() -> None:
    """As Strimzi's rules for the JMX exporter make them, and its board, Grafana's, and the exporter's example use them."""
    text, content_type = render(BEANS)
    assert content_type.startswith("text/plain")
    found = samples(text)
    assert found["kafka_connect_source_task_source_record_write_total"] == (TASK, 7.0)
    assert found["kafka_connect_connector_task_status"] == ({**TASK, "status": "running"}, 1.0)
    assert found["kafka_connect_connector_task_pause_ratio"] == (TASK, 0.5)
    assert found["kafka_connect_connector_status"] == ({"connector": "lines", "status": "paused"}, 1.0)
    assert found["kafka_connect_connector_connector_class"][0]["connector_class"] == 'Li"nes'
    assert found["kafka_connect_worker_task_count"] == ({}, 3.0)
    assert found["kafka_connect_worker_connector_failed_task_count"] == ({"connector": "lines"}, 1.0)
    assert found["kafka_connect_task_error_total_record_errors"] == (TASK, 2.0)
    assert found["kafka_consumer_incoming_byte_total"] == ({"clientid": "c"}, 9.0)
    lag = found["kafka_consumer_fetch_manager_records_lag"]
    assert lag == ({"clientid": "c", "topic": "t", "partition": "1"}, 4.0)
    assert found["sluiceway_task_state_seconds_total"] == ({**TASK, "state": "running"}, 8.0)


def test_the_names_of_the_exporter_without_rules() -> None:
    found = samples(render(BEANS, "", Naming.JMX)[0])
    assert found["kafka_connect_source_task_metrics_source_record_write_total"] == (TASK, 7.0)
    assert found["kafka_connect_connect_worker_metrics_task_count"] == ({}, 3.0)
    assert found["kafka_consumer_consumer_metrics_incoming_byte_total"] == ({"client_id": "c"}, 9.0)


def test_openmetrics_for_those_who_accept_it() -> None:
    text, content_type = render(BEANS, "application/openmetrics-text; version=1.0.0")
    assert content_type.startswith("application/openmetrics-text")
    families = {family.name: family for family in parse_openmetrics(text.decode())}  # type: ignore[no-untyped-call]
    assert families["kafka_connect_source_task_source_record_write"].type == "counter"
    assert families["kafka_connect_connector_task_pause_ratio"].type == "gauge"
