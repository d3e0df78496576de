"""A sink whose topic has transactions or gets more partitions."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from sluiceway.connectors.verifiable.checker import check
from sluiceway.connectors.verifiable.results import from_file
from support.eventually import eventually
from support.faults.rows import NewRow
from support.faults.world import World

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

ABORTED = 9  # the task number of records in aborted transactions


@pytest.mark.matrix(39)
def test_aborted_transactions_and_markers_are_not_delivered(place: World, row: NewRow, tmp_path: Path) -> None:
    """Each bounded run ends at a transaction marker, and the next continues after it."""
    made = row("transactions aborted and committed, read in three runs", "0 lost, 0 duplicated, none of the aborted")
    topic, file = f"{place.name}-transactions", tmp_path / "results"
    admin = AdminClient({"bootstrap.servers": place.address})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
    name = place.sink(topic, file, consumer_override_isolation_level="read_committed")
    producer = Producer({"bootstrap.servers": place.address, "transactional.id": place.name})
    producer.init_transactions(30)
    numbers = {0: itertools.count(), ABORTED: itertools.count()}
    for ending in ("abort", "commit", "abort"):
        for size, task in ((1, 0), (2, ABORTED), (3, 0), (5, ABORTED), (8, 0), *(((13, ABORTED),) if ending == "abort" else ())):
            producer.begin_transaction()
            for _ in range(size):
                producer.produce(topic, f'{{"task":{task},"seqno":{next(numbers[task])}}}')
            producer.abort_transaction(30) if task == ABORTED else producer.commit_transaction(30)
        place.batch(name)
    verdict = check(from_file(file), sent={0: 3 * 12 - 1})
    made.judge(verdict)
    assert verdict.exactly_once, verdict
    assert [task.task for task in verdict.tasks] == [0]


@pytest.mark.matrix(38)
def test_added_partitions_are_read_from_their_start(place: World, row: NewRow, tmp_path: Path) -> None:
    made = row("partitions grow from 1 to 3", "0 lost, 0 duplicated, RUNNING")
    topic, file = f"{place.name}-growing", tmp_path / "results"
    admin = AdminClient({"bootstrap.servers": place.address})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
    name = place.sink(topic, file, consumer_override_metadata_max_age_ms="2000")
    send(place, topic, {0: range(100)})
    place.driver(name)
    eventually(lambda: check(from_file(file)).total == 100, within=90, what=f"100 records\n{place.drivers[0].log_tail(20)}")
    admin.create_partitions([NewPartitions(topic, 3)])[topic].result(30)
    # A new client: one with cached metadata may see the new partitions late.
    send(place, topic, {0: range(100, 200), 1: range(100), 2: range(100)})
    eventually(
        lambda: check(from_file(file)).total >= 400,
        within=90,
        what=f"400 records, not {check(from_file(file))}\n{place.drivers[0].log_tail(20)}",
    )
    place.drivers[0].stop(30)
    verdict = check(from_file(file), sent={0: 199, 1: 99, 2: 99})
    made.judge(verdict)
    assert verdict.exactly_once, verdict


def send(place: World, topic: str, numbers: dict[int, range]) -> None:
    """Send numbers; each task's go to the partition of the same number."""
    producer = Producer({"bootstrap.servers": place.address})
    for task, its in numbers.items():
        for number in its:
            producer.produce(topic, f'{{"task":{task},"seqno":{number}}}', partition=task)
    assert producer.flush(30) == 0
