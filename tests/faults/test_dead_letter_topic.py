"""Dead letter queue records that cannot be written: no offset after them is committed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sluiceway.connectors.verifiable.checker import check
from sluiceway.connectors.verifiable.results import from_file
from sluiceway.storage.model import TaskId
from support.eventually import eventually
from support.faults.broker import FaultyBroker
from support.faults.cluster import Cluster
from support.faults.rows import NewRow
from support.faults.worker_group import WorkerGroup

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

BAD = b"x" * 2000


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyBroker]:
    """A broker that does not create topics automatically."""
    made = FaultyBroker(tmp_path_factory.mktemp("broker"), {"auto.create.topics.enable": "false"})
    try:
        made.start()
        yield made
    finally:
        made.close()


@pytest.mark.matrix(22)
@pytest.mark.parametrize("how", ["deleted", "too small"])
def test_an_unwritable_dead_letter_queue_topic_holds_offsets_back(
    group: WorkerGroup, cluster: Cluster, row: NewRow, tmp_path: Path, how: str
) -> None:
    made = row(f"dead letter topic {how}", "no later offset, no dead letter queue record lost; 0 lost, one batch repeated")
    topic, dlq, file = cluster.create(f"{group.name}-mixed"), cluster.create(f"{group.name}-dead"), tmp_path / "results"
    key = "errors.deadletterqueue.topic."
    name = group.sink(topic, file, **{"errors.tolerance": "all", f"{key}name": dlq, f"{key}replication.factor": "1"})
    cluster.send(topic, [(None, b'{"task":0,"seqno":%d}' % number) for number in range(100)])
    driver = group.driver(name)
    eventually(lambda: cluster.committed(name, topic) == 100, what=f"the first records\n{driver.log_tail(20)}")
    if how == "deleted":
        cluster.delete(dlq)
    else:
        cluster.set(dlq, max_message_bytes="1000")
    cluster.send(topic, [(None, BAD)])
    cluster.send(topic, [(None, b'{"task":0,"seqno":%d}' % number) for number in range(100, 200)])
    trace = group.failed(name)
    assert "A dead letter queue record was not written" in trace
    assert dlq in trace
    assert cluster.committed(name, topic) <= 100
    if how == "too small":
        cluster.set(dlq, max_message_bytes="1000000")
    mended = time.monotonic()
    group.herder.restart_task(TaskId(name, 0))
    eventually(lambda: cluster.committed(name, topic) == 201, what=f"all offsets\n{driver.log_tail(20)}")
    made.recovered(time.monotonic() - mended)
    group.drain(driver)
    assert {each.value for each in cluster.messages(dlq)} == {BAD}
    verdict = check(from_file(file), sent={0: 199})
    made.judge(verdict)
    assert verdict.lost == 0, verdict
    assert verdict.duplicated <= 100, verdict
