"""All metrics, with what they mean, and those of Kafka Connect that do not exist here, with the reason. No I/O."""

from __future__ import annotations

from collections.abc import Mapping

from sluiceway.metrics.beans import CONNECT, OWN, Bean

_CLIENT = """
request-total|requests sent
request-rate|requests sent per second
response-total|responses received
response-rate|responses received per second
outgoing-byte-total|bytes sent
outgoing-byte-rate|bytes sent per second
incoming-byte-total|bytes received
incoming-byte-rate|bytes received per second
request-latency-avg|time until the answer to a request, in milliseconds, on average
request-latency-max|longest time until the answer to a request, in milliseconds
requests-in-flight|requests without an answer yet
connection-count|open connections to brokers
connection-creation-total|connections opened
connection-creation-rate|connections opened per second
connection-close-total|connections closed
connection-close-rate|connections closed per second
"""

_DESCRIPTIONS = {
    (CONNECT, "app-info"): """
version|the version of Sluiceway, as a label
""",
    (CONNECT, "connector-metrics"): """
status|state of the connector, as a label
connector-type|source or sink, as a label
connector-class|the connector's class, as a label
connector-version|the connector's version, as a label
""",
    (CONNECT, "connector-task-metrics"): """
status|state of the task, as a label
running-ratio|share of the time since the task's start in which it was RUNNING
pause-ratio|share of the time since the task's start in which it was PAUSED
offset-commit-max-time-ms|longest commit of offsets, in milliseconds
offset-commit-avg-time-ms|average commit of offsets, in milliseconds
offset-commit-success-percentage|share of the commits that succeeded, from 0 to 1
offset-commit-failure-percentage|share of the commits that failed, from 0 to 1
batch-size-max|records in the largest batch
batch-size-avg|records in a batch, on average
connector-class|the connector's class, as a label
connector-type|source or sink, as a label
connector-version|the connector's version, as a label
task-class|the task's class, as a label
task-version|the task's version, as a label
key-converter-class|the class of the key converter, as a label
key-converter-version|the version of the key converter, as a label
value-converter-class|the class of the value converter, as a label
value-converter-version|the version of the value converter, as a label
header-converter-class|the class of the header converter, as a label
header-converter-version|the version of the header converter, as a label
""",
    (CONNECT, "connector-transform-metrics"): """
transform-class|the class of a transform, as a label
transform-version|the version of a transform, as a label
""",
    (CONNECT, "connector-predicate-metrics"): """
predicate-class|the class of a predicate, as a label
predicate-version|the version of a predicate, as a label
""",
    (CONNECT, "source-task-metrics"): """
source-record-poll-total|records that poll has returned
source-record-poll-rate|records per second that poll returns
source-record-write-total|records that Kafka has acknowledged, without those that transforms dropped
source-record-write-rate|records per second given to the producer, without those that transforms dropped
poll-batch-max-time-ms|longest poll that returned records, in milliseconds
poll-batch-avg-time-ms|average poll that returned records, in milliseconds
source-record-active-count|records given to the producer that Kafka has not acknowledged
source-record-active-count-max|largest source-record-active-count
source-record-active-count-avg|average source-record-active-count
transaction-size-min|records in the smallest transaction; for exactly-once sources
transaction-size-max|records in the largest transaction; for exactly-once sources
transaction-size-avg|records in a transaction, on average; for exactly-once sources
""",
    (CONNECT, "sink-task-metrics"): """
sink-record-read-total|records read from Kafka, before transforms
sink-record-read-rate|records per second read from Kafka, before transforms
sink-record-send-total|records that put has taken, without those that transforms dropped
sink-record-send-rate|records per second that put takes, without those that transforms dropped
put-batch-max-time-ms|longest put, in milliseconds
put-batch-avg-time-ms|average put, in milliseconds
partition-count|topic partitions that the task has
sink-record-lag-max|largest number of records of a topic partition that were put and are not committed
sink-record-active-count|records that were put and are not committed
sink-record-active-count-max|largest sink-record-active-count
sink-record-active-count-avg|average sink-record-active-count
offset-commit-seq-no|number of the last commit of offsets; intervals without new offsets do not count
offset-commit-completion-total|commits of offsets that succeeded; intervals without new offsets do not count
offset-commit-completion-rate|commits of offsets per second that succeed
offset-commit-skip-total|always 0: a late answer to a commit is not ignored, because it still says what is committed
offset-commit-skip-rate|always 0, as offset-commit-skip-total
""",
    (CONNECT, "task-error-metrics"): """
total-record-failures|failed attempts to transform, convert, or write a record, retries included
total-record-errors|records that failed for good
total-records-skipped|records that were skipped because of errors
total-retries|attempts that were repeated
total-errors-logged|errors that errors.log.enable has logged
deadletterqueue-produce-requests|records given to the dead letter queue
deadletterqueue-produce-failures|records that the dead letter queue did not take
last-error-timestamp|time of the last error, in milliseconds since the epoch; 0 if there was none
""",
    (CONNECT, "connect-worker-metrics"): """
connector-count|connectors of the driver, or of the cluster
task-count|tasks of the driver, or of the cluster
connector-startup-attempts-total|starts of connectors
connector-startup-success-total|starts of connectors that succeeded
connector-startup-success-percentage|share of the starts of connectors that succeeded, from 0 to 1
connector-startup-failure-total|starts of connectors that failed
connector-startup-failure-percentage|share of the starts of connectors that failed, from 0 to 1
task-startup-attempts-total|starts of tasks
task-startup-success-total|starts of tasks that succeeded
task-startup-success-percentage|share of the starts of tasks that succeeded, from 0 to 1
task-startup-failure-total|starts of tasks that failed
task-startup-failure-percentage|share of the starts of tasks that failed, from 0 to 1
connector-total-task-count|tasks of the connector
connector-running-task-count|tasks of the connector that are RUNNING
connector-paused-task-count|tasks of the connector that are PAUSED
connector-failed-task-count|tasks of the connector that are FAILED
connector-unassigned-task-count|tasks of the connector that are UNASSIGNED
connector-destroyed-task-count|always 0: the statuses of deleted tasks are removed
connector-restarting-task-count|tasks of the connector that are RESTARTING
""",
    ("kafka.consumer", "consumer-metrics"): _CLIENT,
    ("kafka.producer", "producer-metrics"): """
record-send-total|records sent
record-send-rate|records sent per second
byte-total|bytes of records sent
byte-rate|bytes of records sent per second
record-retry-total|retries of requests with records
record-retry-rate|retries of requests with records per second
record-queue-time-avg|time of a batch in the buffer, in milliseconds, on average
record-queue-time-max|longest time of a batch in the buffer, in milliseconds
batch-size-avg|bytes of a batch, on average
batch-size-max|bytes of the largest batch
records-per-request-avg|records in a batch, on average
produce-throttle-time-avg|time for which the broker throttled, in milliseconds, on average
buffer-total-bytes|size of the buffer
buffer-available-bytes|free part of the buffer
"""
    + _CLIENT,
    ("kafka.consumer", "consumer-fetch-manager-metrics"): """
records-consumed-total|records read from the brokers
records-consumed-rate|records read from the brokers per second
bytes-consumed-total|bytes of records read from the brokers
bytes-consumed-rate|bytes of records read from the brokers per second
records-lag|records between the consumer's committed offset and the end of the topic partition
records-lag-max|largest records-lag
fetch-total|fetch requests
fetch-rate|fetch requests per second
fetch-latency-avg|time until the answer to a request, in milliseconds, on average
fetch-throttle-time-avg|time for which the broker throttled, in milliseconds, on average
fetch-throttle-time-max|longest time for which the broker throttled, in milliseconds
""",
    ("kafka.consumer", "consumer-coordinator-metrics"): """
assigned-partitions|topic partitions that the consumer has
rebalance-total|rebalances of the consumer group
rebalance-rate|rebalances of the consumer group per second
last-rebalance-seconds-ago|seconds since the last rebalance
""",
    (OWN, "task-metrics"): """
record-delay-ms-max|longest time from a record's timestamp to the commit of its offset, in milliseconds
record-delay-ms-avg|time from the timestamp of the oldest record of a commit to the commit, in milliseconds, on average
newest-record-age-ms|age of the newest record's timestamp, in milliseconds: how far a source is behind, while records come
source-lag-ms|age of the newest moment up to which the task has read its source, in milliseconds; for sources that know it
source-lag-bytes|bytes that the source has and the task has not read; for sources that know it
cpu-seconds-total|processor time of the task's own thread
no-progress-ms|milliseconds without progress of a RUNNING task that holds records or whose source fails; otherwise 0
waiting-ms|milliseconds for which the task has been waiting for a system that fails or does not answer; otherwise 0
columnar-batches-total|batches handled as Arrow columns
row-form-batches-total|batches handled record by record, by reason, a label
""",
    (OWN, "task-plugin-metrics"): """
log-retained-bytes|bytes of the database's log that the server keeps for the connector
log-free-bytes|bytes that the log may grow before the server drops what the connector has not read; absent without a limit
log-behind-bytes|bytes of the database's log that the connector has not read
statements-without-rows|statements in MariaDB's or MySQL's log that changed captured rows and have no records
log-age-seconds|age of the oldest change that the connector has not read
log-expires-seconds|seconds until the server may drop log that the connector has not read; absent without a limit
""",
    (OWN, "task-state-metrics"): """
seconds-total|time in each state since the task's start, in seconds
""",
    (OWN, "task-process-metrics"): """
memory-bytes|resident memory of the task's process, divided by its tasks
""",
    (OWN, "task-launch-metrics"): """
restarts-total|starts of the task by this driver after the first
""",
    (OWN, "process-metrics"): """
cpu-seconds-total|processor time of a Python process
memory-bytes|resident memory of a Python process
connector-startup-success-total|starts of connectors in the process that succeeded
connector-startup-failure-total|starts of connectors in the process that failed
task-startup-success-total|starts of tasks in the process that succeeded
task-startup-failure-total|starts of tasks in the process that failed
""",
    (OWN, "connector-metrics"): """
heartbeat-age-ms|time since the last heartbeat for a connector that should run, in milliseconds
""",
    (OWN, "lease-metrics"): """
takeovers-total|leases that this driver has taken from a driver whose heartbeats had not stopped
last-takeover-timestamp|time of the last such takeover, in milliseconds since the epoch
""",
}

_NO_GROUP = "no worker group: Airflow starts drivers, and the config topic says which of them runs a connector"
ABSENT: Mapping[tuple[str, str], str] = {
    **{
        ("connect-worker-rebalance-metrics", name): _NO_GROUP
        for name in (
            "connect-protocol",
            "leader-name",
            "epoch",
            "completed-rebalances-total",
            "rebalancing",
            "rebalance-max-time-ms",
            "rebalance-avg-time-ms",
            "time-since-last-rebalance-ms",
        )
    },
}
"""Kafka Connect's metrics that do not exist here, by type and name, with the reason."""


def _parse(text: str) -> dict[str, str]:
    lines = [line for line in text.splitlines() if line]
    return {name: meaning for name, _, meaning in (line.partition("|") for line in lines)}


METRICS: Mapping[tuple[str, str], Mapping[str, str]] = {
    group: {name: meaning for name, meaning in _parse(text).items() if (group[1], name) not in ABSENT}
    for group, text in _DESCRIPTIONS.items()
}
"""The meaning of each metric, by domain and type and by name."""


def description(bean: Bean, attribute: str) -> str:
    """Return the meaning of a bean's attribute, for Prometheus."""
    meaning = METRICS.get((bean.domain, bean.type), {}).get(attribute, attribute)
    return meaning[:1].upper() + meaning[1:]
