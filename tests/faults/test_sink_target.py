"""A sink whose target is unavailable, reports deadlocks, or is full."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from sluiceway.connectors.verifiable.checker import check
from sluiceway.connectors.verifiable.results import from_file
from support.eventually import eventually
from support.faults.cluster import Cluster
from support.faults.connectors import TCP_SINK
from support.faults.durations import fault_seconds
from support.faults.feed import Feed
from support.faults.processes import Role, processes, resident
from support.faults.rows import NewRow
from support.faults.target import Target
from support.faults.worker_group import RATE, WorkerGroup

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

MOCK_SINK = "sluiceway.connectors.mock.sink.MockSinkConnector"
GROWTH = 48 << 20  # bytes: far less than the waiting records, far more than allocators retain


@pytest.fixture
def feed(group: WorkerGroup) -> Iterator[Feed]:
    with Feed(group.address, f"{group.name}-fed", rate=RATE, filling=1000) as made:
        yield made


def behind(feed: Feed) -> int:
    return sum(feed.sent.values())


@pytest.mark.matrix(19)
@pytest.mark.timeout(900)
def test_a_sink_waits_for_an_unavailable_target(
    group: WorkerGroup, feed: Feed, cluster: Cluster, row: NewRow, own_connectors: None
) -> None:
    seconds = fault_seconds(30, full=300)
    made = row(f"sink target down for {seconds:g} s", "0 lost, 0 duplicated, offsets not moved, no growth, RUNNING by itself")
    name = f"{group.name}-tcp"
    with Target() as target:
        group.herder.create(name, {"connector.class": TCP_SINK, "topics": feed.topic, "port": str(target.port)})
        driver = group.driver(name)
        eventually(lambda: len(target.rows) > 2 * RATE, what=f"rows\n{driver.log_tail(20)}")
        target.down()
        before, taken = resident(driver), len(target.rows)
        time.sleep(seconds)  # how long the fault lasts
        grown = resident(driver) - before
        assert len(target.rows) == taken
        assert cluster.committed(name, feed.topic) <= taken
        assert group.states(name) == ("RUNNING", ["RUNNING"])
        target.up()
        ended = time.monotonic()
        eventually(lambda: len(target.rows) >= behind(feed) - RATE, what=f"rows\n{driver.log_tail(20)}")
        made.recovered(time.monotonic() - ended)
        sent = feed.finish()
        eventually(lambda: len(target.rows) > sent[0], what="all rows")
        group.drain(driver)
        verdict = check(target.rows, sent=sent)
    made.judge(verdict)
    made.seen += f"; grown by {grown / 2**20:.0f} MiB"
    assert verdict.exactly_once, verdict
    assert grown < GROWTH
    assert cluster.committed(name, feed.topic) == len(target.rows)


@pytest.mark.matrix(20)
def test_a_batch_with_deadlocks_is_put_again_as_a_whole(group: WorkerGroup, feed: Feed, row: NewRow, tmp_path: Path) -> None:
    made = row("5 deadlocks (RetriableError) in a row", "0 lost, 0 duplicated, RUNNING")
    name, file = f"{group.name}-deadlocked", tmp_path / "results"
    failing = {"failure.in": "put", "failure.kind": "retriable", "failure.after.records": "1000", "failure.times": "5"}
    group.herder.create(name, {"connector.class": MOCK_SINK, "topics": feed.topic, "file": str(file), **failing})
    driver = group.driver(name)
    eventually(lambda: "Mock failure in put" in driver.log.read_text(), what=f"deadlocks\n{driver.log_tail(20)}")
    began = time.monotonic()
    eventually(lambda: check(from_file(file)).total >= behind(feed) - RATE > 1000, what="all but the newest records")
    made.recovered(time.monotonic() - began)
    assert group.states(name) == ("RUNNING", ["RUNNING"])
    sent = feed.finish()
    eventually(lambda: check(from_file(file), sent=sent).lost == 0, what="everything sent is written")
    group.drain(driver)
    assert driver.log.read_text().count("records failed; retrying in") == 5
    verdict = check(from_file(file), sent=sent)
    made.judge(verdict)
    assert verdict.exactly_once, verdict


@pytest.mark.matrix(27)
def test_a_temporarily_full_disk_loses_nothing(group: WorkerGroup, feed: Feed, row: NewRow, tmp_path: Path) -> None:
    """A file size limit at the file's current size makes the sink's next write fail."""
    made = row("the sink's file can grow no further for 10 s", "0 lost, 0 duplicated, RUNNING by itself")
    file = tmp_path / "results"
    name = group.sink(feed.topic, file)
    driver = group.driver(name)
    eventually(lambda: check(from_file(file)).total > RATE, what=f"records\n{driver.log_tail(20)}")
    workers = processes(driver, Role.WORKERS)
    full = file.stat().st_size + 4096
    limit(workers, full)
    try:
        eventually(lambda: "Couldn't write to the result file" in driver.log.read_text(), what="a write that failed")
        time.sleep(10)  # how long the fault lasts
        assert file.stat().st_size <= full
    finally:
        limit(workers, psutil.RLIM_INFINITY)
    ended = time.monotonic()
    eventually(lambda: check(from_file(file)).total >= behind(feed) - RATE, what=f"records\n{driver.log_tail(20)}")
    made.recovered(time.monotonic() - ended)
    assert group.states(name) == ("RUNNING", ["RUNNING"])
    sent = feed.finish()
    eventually(lambda: check(from_file(file), sent=sent).lost == 0, what="everything sent is written")
    group.drain(driver)
    verdict = check(from_file(file), sent=sent)
    made.judge(verdict)
    assert verdict.exactly_once, verdict


def limit(workers: list[psutil.Process], size: int) -> None:
    for process in workers:
        process.rlimit(psutil.RLIMIT_FSIZE, (size, psutil.RLIM_INFINITY))
