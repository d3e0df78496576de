"""The catalog of metrics against the list in Kafka Connect 4.3's ConnectMetricsRegistry, which its documentation is made from."""

from __future__ import annotations

from sluiceway.metrics.beans import CONNECT
from sluiceway.metrics.catalog import ABSENT, METRICS
from sluiceway.metrics.collector import worker_bean
from sluiceway.metrics.registry import Registry
from sluiceway.metrics.task_metrics import TaskMetrics
from sluiceway.storage.model import TaskId

KAFKA_CONNECT = {
    "connector-metrics": """
        status connector-type connector-class connector-version
    """,
    "connector-task-metrics": """
        status running-ratio pause-ratio offset-commit-max-time-ms offset-commit-avg-time-ms batch-size-max
        batch-size-avg offset-commit-failure-percentage offset-commit-success-percentage connector-class
        connector-version connector-type task-class task-version key-converter-class value-converter-class
        key-converter-version value-converter-version header-converter-class header-converter-version
    """,
    "connector-transform-metrics": """
        transform-class transform-version
    """,
    "connector-predicate-metrics": """
        predicate-class predicate-version
    """,
    "source-task-metrics": """
        source-record-poll-rate source-record-poll-total source-record-write-rate source-record-write-total
        poll-batch-max-time-ms poll-batch-avg-time-ms source-record-active-count source-record-active-count-max
        source-record-active-count-avg transaction-size-min transaction-size-max transaction-size-avg
    """,
    "sink-task-metrics": """
        sink-record-read-rate sink-record-read-total sink-record-send-rate sink-record-send-total sink-record-lag-max
        partition-count offset-commit-seq-no offset-commit-completion-rate offset-commit-completion-total
        offset-commit-skip-rate offset-commit-skip-total put-batch-max-time-ms put-batch-avg-time-ms
        sink-record-active-count sink-record-active-count-max sink-record-active-count-avg
    """,
    "connect-worker-metrics": """
        connector-count task-count connector-startup-attempts-total connector-startup-success-total
        connector-startup-success-percentage connector-startup-failure-total connector-startup-failure-percentage
        task-startup-attempts-total task-startup-success-total task-startup-success-percentage
        task-startup-failure-total task-startup-failure-percentage connector-total-task-count
        connector-running-task-count connector-paused-task-count connector-failed-task-count
        connector-unassigned-task-count connector-destroyed-task-count connector-restarting-task-count
    """,
    "connect-worker-rebalance-metrics": """
        connect-protocol leader-name epoch completed-rebalances-total rebalancing rebalance-max-time-ms
        rebalance-avg-time-ms time-since-last-rebalance-ms
    """,
    "task-error-metrics": """
        total-record-failures total-record-errors total-records-skipped total-retries total-errors-logged
        deadletterqueue-produce-requests deadletterqueue-produce-failures last-error-timestamp
    """,
}
ALL = {(kind, name) for kind, names in KAFKA_CONNECT.items() for name in names.split()}
OURS = {(kind, name) for (domain, kind), names in METRICS.items() if domain == CONNECT for name in names}


def test_each_metric_of_kafka_connect_is_here_or_has_a_reason() -> None:
    assert len(ALL) == 91
    assert set(ABSENT) == ALL - OURS
    assert {("app-info", "version")} == OURS - ALL, "metrics that Kafka Connect does not have belong to another domain"
    print(f"{'type':36} {'here':>4} {'of':>3}")
    for kind, names in KAFKA_CONNECT.items():
        print(f"{kind:36} {sum(each == kind for each, _ in OURS):4} {len(names.split()):3}")
    share = len(OURS & ALL) / len(ALL)
    print(f"{'all':36} {len(OURS & ALL):4} {len(ALL):3}  {share:.1%}")
    for (kind, name), reason in ABSENT.items():
        print(f"absent: {kind} {name}: {reason}")
    assert share >= 0.9


def test_what_tasks_and_workers_report_is_in_the_catalog() -> None:
    """And all of it, except what depends on the plugins of a task and on statuses."""
    registry = Registry()
    registry.lease_taken_over("c")
    for sink in (False, True):
        with registry.task(TaskMetrics(TaskId("c", 0), sink=sink)):
            for bean in [*registry.beans(), worker_bean([], 0, 0)]:
                known = METRICS[bean.domain, bean.type]
                assert set(bean.values) <= set(known)
                if bean.type in ("source-task-metrics", "sink-task-metrics", "task-error-metrics"):
                    assert set(bean.values) == set(known)
