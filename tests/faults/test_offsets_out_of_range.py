"""A sink whose committed offsets are out of range."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from sluiceway.connectors.verifiable.checker import check
from sluiceway.connectors.verifiable.results import from_file
from support.eventually import eventually
from support.faults.cluster import Cluster
from support.faults.rows import NewRow
from support.faults.worker_group import WorkerGroup

pytestmark = [pytest.mark.kafka, pytest.mark.spark]


class Reading:
    """A sink that has read 1,000 records and is paused."""

    def __init__(self, group: WorkerGroup, cluster: Cluster, file: Path) -> None:
        self.group, self.cluster, self.file = group, cluster, file
        self.topic = cluster.create(f"{group.name}-numbers")
        self.send(range(1000))
        self.name = group.sink(self.topic, file)
        group.batch(self.name)
        assert cluster.committed(self.name, self.topic) == 1000

    def send(self, numbers: range) -> None:
        self.cluster.send(self.topic, ((None, f'{{"task":0,"seqno":{number}}}') for number in numbers))

    def policy(self, reset: str) -> None:
        config = self.group.herder.info(self.name).config
        self.group.herder.put_config(self.name, {**config, "consumer.override.auto.offset.reset": reset})

    def recreate(self) -> None:
        """Recreate the topic with 300 records and keep the offset, as after restoring a backup: the offset is ahead of the end.

        Kafka deletes a group's offsets together with the topic.
        """
        self.cluster.delete(self.topic)
        self.cluster.create(self.topic)
        self.send(range(1000, 1300))
        self.cluster.commit(self.name, self.topic, 1000)


@pytest.fixture
def reading(group: WorkerGroup, cluster: Cluster, tmp_path: Path) -> Reading:
    return Reading(group, cluster, tmp_path / "results")


@pytest.mark.matrix(31)
def test_an_offset_ahead_of_the_topic_is_logged_and_no_record_is_skipped(reading: Reading, row: NewRow) -> None:
    made = row("topic recreated, shorter than the sink's offset", "logged; 0 lost, 0 duplicated")
    reading.recreate()
    started = time.monotonic()
    driver = reading.group.driver(reading.name)
    eventually(lambda: check(from_file(reading.file), sent={0: 1299}).lost == 0, what=f"the records\n{driver.log_tail(20)}")
    made.recovered(time.monotonic() - started)
    reading.group.drain(driver)
    verdict = check(from_file(reading.file), sent={0: 1299})
    made.judge(verdict)
    assert verdict.exactly_once, verdict
    assert f"Offset 1000 of {reading.topic}-0, the next to read, does not exist" in driver.log.read_text()


@pytest.mark.matrix(31)
def test_records_deleted_before_they_were_read_are_logged(reading: Reading, row: NewRow) -> None:
    made = row("retention deleted 400 records before the sink read them", "logged with their number; nothing else lost")
    reading.send(range(1000, 1600))
    reading.cluster.truncate(reading.topic, 1400)
    started = time.monotonic()
    driver = reading.group.batch(reading.name)
    made.recovered(time.monotonic() - started)
    verdict = check(from_file(reading.file), sent={0: 1599})
    made.judge(verdict)
    assert [each.gaps for each in verdict.tasks] == [((1000, 1399),)]
    assert verdict.duplicated == 0, verdict
    said = driver.log.read_text()
    assert f"Offset 1000 of {reading.topic}-0, the next to read, no longer exists" in said
    assert "400 offsets were deleted before they were read" in said


@pytest.mark.matrix(31)
@pytest.mark.parametrize("why", ["recreated", "retention"])
def test_with_reset_none_an_offset_out_of_range_stops_the_sink(reading: Reading, row: NewRow, why: str) -> None:
    made = row(f"offset out of range ({why}), auto.offset.reset=none", "FAILED, nothing written, offset kept")
    if why == "recreated":
        reading.recreate()
    else:
        reading.send(range(1000, 1600))
        reading.cluster.truncate(reading.topic, 1400)
    reading.policy("none")
    driver = reading.group.driver(reading.name)
    trace = reading.group.failed(reading.name)
    assert reading.topic in trace
    reading.group.drain(driver)
    verdict = check(from_file(reading.file), sent={0: 999})
    made.judge(verdict)
    assert verdict.exactly_once, verdict
    assert reading.cluster.committed(reading.name, reading.topic) == 1000
