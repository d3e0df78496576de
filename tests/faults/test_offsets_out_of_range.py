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
from support.faults.world import World

pytestmark = [pytest.mark.kafka, pytest.mark.spark]


class Reading:
    """A sink that has read 1,000 records and is paused."""

    def __init__(self, place: World, cluster: Cluster, file: Path) -> None:
        self.place, self.cluster, self.file = place, cluster, file
        self.topic = cluster.create(f"{place.name}-numbers")
        self.send(range(1000))
        self.name = place.sink(self.topic, file)
        place.batch(self.name)
        assert cluster.committed(self.name, self.topic) == 1000

    def send(self, numbers: range) -> None:
        self.cluster.send(self.topic, ((None, f'{{"task":0,"seqno":{number}}}') for number in numbers))

    def policy(self, reset: str) -> None:
        config = self.place.herder.info(self.name).config
        self.place.herder.put_config(self.name, {**config, "consumer.override.auto.offset.reset": reset})

    def made_anew(self) -> None:
        """Recreate the topic with 300 records and keep the offset, as after restoring a backup: the offset is ahead of the end.

        Kafka deletes a group's offsets together with the topic.
        """
        self.cluster.delete(self.topic)
        self.cluster.create(self.topic)
        self.send(range(1000, 1300))
        self.cluster.commit(self.name, self.topic, 1000)


@pytest.fixture
def reading(place: World, cluster: Cluster, tmp_path: Path) -> Reading:
    return Reading(place, cluster, tmp_path / "results")


@pytest.mark.matrix(31)
def test_an_offset_ahead_of_the_topic_is_logged_and_no_record_is_skipped(reading: Reading, row: NewRow) -> None:
    made = row("topic made anew, shorter than the sink's offset", "told in the log; 0 lost, 0 duplicated")
    reading.made_anew()
    started = time.monotonic()
    driver = reading.place.driver(reading.name)
    eventually(
        lambda: check(from_file(reading.file), sent={0: 1299}).lost == 0, within=90, what=f"the records\n{driver.log_tail(20)}"
    )
    made.recovered(time.monotonic() - started)
    reading.place.drain(driver)
    verdict = check(from_file(reading.file), sent={0: 1299})
    made.judge(verdict)
    assert verdict.exactly_once, verdict
    assert f"Offset 1000 of {reading.topic}-0, where reading was to go on, is not there" in driver.log.read_text()


@pytest.mark.matrix(31)
def test_records_deleted_before_they_were_read_are_logged(reading: Reading, row: NewRow) -> None:
    made = row("retention deleted 400 records before the sink read them", "told with their number; nothing else lost")
    reading.send(range(1000, 1600))
    reading.cluster.truncate(reading.topic, 1400)
    started = time.monotonic()
    driver = reading.place.batch(reading.name)
    made.recovered(time.monotonic() - started)
    verdict = check(from_file(reading.file), sent={0: 1599})
    made.judge(verdict)
    assert [each.gaps for each in verdict.tasks] == [((1000, 1399),)]
    assert verdict.duplicated == 0, verdict
    said = driver.log.read_text()
    assert f"Offset 1000 of {reading.topic}-0, where reading was to go on, is not there any more" in said
    assert "400 offsets were deleted before they were read" in said


@pytest.mark.matrix(31)
@pytest.mark.parametrize("why", ["made anew", "retention"])
def test_with_reset_none_an_offset_out_of_range_stops_the_sink(reading: Reading, row: NewRow, why: str) -> None:
    made = row(f"offset out of range ({why}), auto.offset.reset=none", "FAILED, nothing written, offset kept")
    if why == "made anew":
        reading.made_anew()
    else:
        reading.send(range(1000, 1600))
        reading.cluster.truncate(reading.topic, 1400)
    reading.policy("none")
    driver = reading.place.driver(reading.name)
    trace = reading.place.failed(reading.name)
    assert reading.topic in trace
    reading.place.drain(driver)
    verdict = check(from_file(reading.file), sent={0: 999})
    made.judge(verdict)
    assert verdict.exactly_once, verdict
    assert reading.cluster.committed(reading.name, reading.topic) == 1000
