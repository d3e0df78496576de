"""Names in Prometheus: those that public boards made for Kafka Connect query."""

from __future__ import annotations

import pytest

from sluiceway.metrics.catalog import METRICS
from sluiceway.metrics.naming import Naming, metric_names

BOARDS = {
    "Strimzi's board": (
        Naming.STRIMZI,
        """
        kafka_connect_worker_connector_count kafka_connect_worker_task_count
        kafka_connect_worker_connector_running_task_count kafka_connect_worker_connector_paused_task_count
        kafka_connect_worker_connector_failed_task_count kafka_connect_worker_connector_unassigned_task_count
        kafka_connect_worker_connector_destroyed_task_count
        kafka_consumer_incoming_byte_total kafka_producer_outgoing_byte_total
        kafka_consumer_connection_count kafka_producer_connection_count
        """,
    ),
    "boards and alerts for the names of the exporter's example": (
        Naming.STRIMZI,
        """
        kafka_connect_connector_status kafka_connect_connector_task_status
        kafka_connect_worker_connector_startup_success_total kafka_connect_worker_connector_startup_failure_total
        kafka_connect_worker_task_startup_success_total kafka_connect_worker_task_startup_failure_total
        kafka_connect_worker_connector_total_task_count
        kafka_connect_connector_task_batch_size_avg kafka_connect_connector_task_batch_size_max
        kafka_connect_connector_task_offset_commit_success_percentage kafka_connect_connector_task_offset_commit_avg_time_ms
        kafka_connect_connector_task_running_ratio
        kafka_connect_task_error_total_record_failures kafka_connect_task_error_total_record_errors
        kafka_connect_task_error_total_records_skipped kafka_connect_task_error_total_errors_logged
        kafka_connect_task_error_total_retries
        kafka_connect_task_error_deadletterqueue_produce_requests kafka_connect_task_error_deadletterqueue_produce_failures
        kafka_connect_source_task_poll_batch_avg_time_ms kafka_connect_source_task_poll_batch_max_time_ms
        kafka_connect_source_task_source_record_poll_rate kafka_connect_source_task_source_record_write_rate
        kafka_connect_source_task_source_record_active_count kafka_connect_source_task_source_record_active_count_avg
        kafka_connect_source_task_source_record_active_count_max
        kafka_connect_sink_task_partition_count kafka_connect_sink_task_put_batch_avg_time_ms
        kafka_connect_sink_task_put_batch_max_time_ms
        kafka_connect_sink_task_sink_record_read_rate kafka_connect_sink_task_sink_record_send_rate
        """,
    ),
    "Confluent's boards": (
        Naming.JMX,
        """
        kafka_connect_app_info kafka_connect_connector_metrics
        kafka_connect_connect_worker_metrics_connector_count
        kafka_connect_connect_worker_metrics_connector_total_task_count
        kafka_connect_connect_worker_metrics_connector_running_task_count
        kafka_connect_connect_worker_metrics_connector_paused_task_count
        kafka_connect_connect_worker_metrics_connector_failed_task_count
        kafka_connect_connect_worker_metrics_connector_unassigned_task_count
        kafka_connect_connect_worker_metrics_connector_destroyed_task_count
        kafka_connect_connector_task_metrics_batch_size_avg kafka_connect_connector_task_metrics_batch_size_max
        kafka_connect_connector_task_metrics_offset_commit_success_percentage
        kafka_connect_connector_task_metrics_offset_commit_avg_time_ms
        kafka_connect_connector_task_metrics_pause_ratio kafka_connect_connector_task_metrics_running_ratio
        kafka_connect_sink_task_metrics_sink_record_read_total kafka_connect_sink_task_metrics_sink_record_send_total
        kafka_connect_sink_task_metrics_sink_record_read_rate kafka_connect_sink_task_metrics_put_batch_avg_time_ms
        kafka_connect_sink_task_metrics_sink_record_active_count_avg kafka_connect_sink_task_metrics_sink_record_lag_max
        kafka_connect_source_task_metrics_source_record_poll_total kafka_connect_source_task_metrics_source_record_write_total
        kafka_connect_source_task_metrics_source_record_write_rate kafka_connect_source_task_metrics_source_record_active_count
        kafka_connect_task_error_metrics_total_errors_logged kafka_connect_task_error_metrics_total_records_skipped
        kafka_connect_task_error_metrics_total_retries
        """,
    ),
}
NOT_HERE = """
    jvm_memory_bytes_used jvm_memory_bytes_max jvm_gc_collection_seconds_sum jvm_threads_current process_cpu_seconds_total
    container_cpu_usage_seconds_total
    kafka_connect_connect_worker_rebalance_metrics_rebalance_avg_time_ms
    kafka_connect_connect_worker_rebalance_metrics_time_since_last_rebalance_ms
    kafka_connect_connect_metrics_successful_authentication_rate kafka_connect_connect_metrics_request_rate
    kafka_connect_connect_metrics_response_rate kafka_connect_connect_metrics_io_ratio
"""
"""Other metrics of these boards: the JVM's metrics, a container's, and those of the worker group and its clients."""


def made(naming: Naming) -> set[str]:
    return {
        name
        for (domain, kind), attributes in METRICS.items()
        for attribute in attributes
        for name in metric_names(domain, kind, attribute, naming)
    }


@pytest.mark.parametrize("board", BOARDS)
def test_the_names_that_boards_query_exist(board: str) -> None:
    naming, names = BOARDS[board]
    assert set(names.split()) - made(naming) == set()


def test_what_is_listed_as_absent_is_absent() -> None:
    assert set(NOT_HERE.split()) & (made(Naming.STRIMZI) | made(Naming.JMX)) == set()


def test_statuses_have_the_names_of_the_exporters_rules() -> None:
    assert metric_names("kafka.connect", "connector-task-metrics", "status") == (
        "kafka_connect_connector_task_status",
        "kafka_connect_connector_status",
    )
    assert metric_names("kafka.connect", "connector-metrics", "status", Naming.JMX) == (
        "kafka_connect_connector_metrics_status",
        "kafka_connect_connector_metrics",
    )
