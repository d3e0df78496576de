"""A sink whose topic has transactions or gets more partitions."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from sluiceway.connectors.verifiable.checker import check
from sluiceway.connectors.verifiable.results import from_file
from support.eventually import LIMIT, eventually
from support.faults.rows import NewRow
from support.faults.worker_group import WorkerGroup

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

ABORTED = 9  # the task number of records in aborted transactions


@pytest.mark.matrix(39)
def test_aborted_transactions_and_markers_are_not_delivered(group: WorkerGroup, row: NewRow, tmp_path: Path) -> None:
    """Each bounded run ends at a transaction marker, and the next continues after it."""
    made = row("transactions aborted and committed, read in three runs", "0 lost, 0 duplicated, none of the aborted")
    topic, file = f"{group.name}-transactions", tmp_path / "results"
    admin = AdminClient({"bootstrap.servers": group.address})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(LIMIT)
    name = group.sink(topic, file, consumer_override_isolation_level="read_committed")
    producer = Producer({"bootstrap.servers": group.address, "transactional.id": group.name})
    producer.init_transactions(30)
    numbers = {0: itertools.count(), ABORTED: itertools.count()}
    for ending in ("abort", "commit", "abort"):
        for size, task in ((1, 0), (2, ABORTED), (3, 0), (5, ABORTED), (8, 0), *(((13, ABORTED),) if ending == "abort" else ())):
            producer.begin_transaction()
            for _ in range(size):
                producer.produce(topic, f'{{"task":{task},"seqno":{next(numbers[task])}}}')
            producer.abort_transaction(30) if task == ABORTED else producer.commit_transaction(30)
        group.batch(name)
    verdict = check(from_file(file), sent={0: 3 * 12 - 1})
    made.judge(verdict)
    assert verdict.exactly_once, verdict
    assert [task.task for task in verdict.tasks] == [0]


@pytest.mark.matrix(38)
def test_added_partitions_are_read_from_their_start(group: WorkerGroup, row: NewRow, tmp_path: Path) -> None:
    made = row("partitions grow from 1 to 3", "0 lost, 0 duplicated, RUNNING")
    topic, file = f"{group.name}-growing", tmp_path / "results"
    admin = AdminClient({"bootstrap.servers": group.address})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(LIMIT)
    name = group.sink(topic, file, consumer_override_metadata_max_age_ms="2000")
    send(group, topic, {0: range(100)})
    group.driver(name)
    eventually(lambda: check(from_file(file)).total == 100, what=f"100 records\n{group.drivers[0].log_tail(20)}")
    admin.create_partitions([NewPartitions(topic, 3)])[topic].result(LIMIT)
    # A new client: one with cached metadata may see the new partitions late.
    send(group, topic, {0: range(100, 200), 1: range(100), 2: range(100)})
    eventually(
        lambda: check(from_file(file)).total >= 400,
        what=f"400 records, not {check(from_file(file))}\n{group.drivers[0].log_tail(20)}",
    )
    group.drivers[0].stop(30)
    verdict = check(from_file(file), sent={0: 199, 1: 99, 2: 99})
    made.judge(verdict)
    assert verdict.exactly_once, verdict


def send(group: WorkerGroup, topic: str, numbers: dict[int, range]) -> None:
    """Send numbers; each task's go to the partition of the same number."""
    producer = Producer({"bootstrap.servers": group.address})
    for task, its in numbers.items():
        for number in its:
            producer.produce(topic, f'{{"task":{task},"seqno":{number}}}', partition=task)
    assert producer.flush(30) == 0
