"""A sink that takes one record per second: its memory, repeated records, and other connectors of the same driver."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sluiceway.connectors.verifiable.checker import check
from sluiceway.connectors.verifiable.results import from_file
from sluiceway.stack.ports import free_port
from sluiceway.stack.process import BackgroundProcess
from support.driver import write_properties
from support.eventually import eventually
from support.faults.cluster import Cluster
from support.faults.feed import Feed
from support.faults.memory import Memory
from support.faults.rows import NewRow
from support.faults.worker_group import RATE, SOURCE, Progress, WorkerGroup

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

MOCK_SINK = "sluiceway.connectors.mock.sink.MockSinkConnector"
BACKLOG, FILLING = 200_000, 1000  # 200 MB, more than the consumer's queue holds
GROWTH = 144 << 20  # bytes: the consumer's queue (64 MB) and what allocators retain
FULL_RATE = 0.8 * RATE


@pytest.fixture
def feed(group: WorkerGroup) -> Iterator[Feed]:
    with Feed(group.address, f"{group.name}-backlog", rate=0, filling=FILLING) as made:
        made.send(1)
        yield made


def slow(feed: Feed, file: Path) -> dict[str, str]:
    """Return the config of a sink that takes one record a second."""
    return {
        "connector.class": MOCK_SINK,
        "topics": feed.topic,
        "file": str(file),
        "throughput": "1",
        "consumer.override.max.poll.records": "2",
    }


def written(file: Path) -> int:
    return check(from_file(file)).total


@pytest.mark.matrix(34)
def test_a_slow_sink_neither_grows_nor_repeats_records_nor_stalls_another_connector(
    group: WorkerGroup, feed: Feed, row: NewRow, tmp_path: Path
) -> None:
    made = row("sink at 1 record/s, 200 MB waiting", "RUNNING, no growth, no repeats; a source beside it at full rate")
    file, name = tmp_path / "results", f"{group.name}-slow"
    group.herder.create(name, slow(feed, file))
    driver = group.driver(name)
    group.running(name)
    eventually(lambda: written(file) >= 1, what=f"the first record\n{driver.log_tail(30)}")
    with Memory(driver) as memory:  # measured from here, before there is a backlog
        feed.send(BACKLOG)
        feed.finish()
        topic = group.source()
        group.driver()
        group.running()
        progress = Progress(group.address, topic)
        progress.more(5 * RATE)
        seconds = progress.more(10 * RATE)
        progress.close()
        some = written(file)
        eventually(lambda: written(file) >= some + 10, what="10 more records")
        assert memory.same_processes()
    verdict = check(from_file(file))
    made.judge(verdict)
    made.seen += f"; {memory.start >> 20} MiB, then {memory.peak >> 20}; the source made {10 * RATE / seconds:.0f} records/s"
    assert group.states(name) == ("RUNNING", ["RUNNING"])
    assert verdict.exactly_once, verdict
    assert memory.peak - memory.start < GROWTH
    assert 10 * RATE / seconds > FULL_RATE


@pytest.mark.matrix(34)
def test_a_slow_or_failing_sink_does_not_stall_a_source_of_the_same_process(
    group: WorkerGroup, feed: Feed, cluster: Cluster, row: NewRow, tmp_path: Path
) -> None:
    made = row("standalone: a source beside a slow sink and one whose records are all bad", "0 lost, 0 duplicated, at full rate")
    file, dlq, topic = tmp_path / "results", f"{group.name}-dead", cluster.create(f"{group.name}-numbers")
    feed.send(20_000)
    feed.finish()
    connectors = {
        "slow": slow(feed, file),
        "refusing": {
            "connector.class": MOCK_SINK,
            "topics": feed.topic,
            "bad.records.share": "1",
            "errors.tolerance": "all",
            "errors.deadletterqueue.topic.name": dlq,
            "errors.deadletterqueue.topic.replication.factor": "1",
        },
        "source": {"connector.class": SOURCE, "topic": topic, "throughput": str(RATE), "batch.size": "50"},
    }
    worker = {
        "bootstrap.servers": group.address,
        "listeners": f"http://127.0.0.1:{free_port()}",
        "offset.storage.file.filename": str(tmp_path / "offsets"),
        "offset.flush.interval.ms": "1000",
        "key.converter": "JsonConverter",
        "value.converter": "JsonConverter",
        "key.converter.schemas.enable": "false",
        "value.converter.schemas.enable": "false",
    }
    files = [write_properties(tmp_path / "worker.properties", worker)]
    for name, config in connectors.items():
        settings = {"name": f"{group.name}-{name}", "tasks.max": "1", **config}
        files.append(write_properties(tmp_path / f"{name}.properties", settings))
    command = [sys.executable, "-m", "sluiceway.cli.main", "standalone", *map(str, files)]
    process = BackgroundProcess("standalone", command, tmp_path / "state", cwd=tmp_path)
    process.start()
    try:
        progress = Progress(group.address, topic)
        progress.more(RATE, driver=process)
        eventually(lambda: written(file) >= 3, what=f"records of the slow sink\n{process.log_tail(30)}")
        seconds = progress.more(10 * RATE, driver=process)
        progress.close()
        eventually(lambda: cluster.end(dlq) == 20_001, what=f"all dead letter queue records\n{process.log_tail(30)}")
        some = written(file)
        eventually(lambda: written(file) >= some + 3, what="more records of the slow sink")
    finally:
        process.stop(40)
    verdict = check(group.seen(topic))
    made.judge(verdict)
    made.seen += f"; {10 * RATE / seconds:.0f} records/s"
    assert verdict.exactly_once, verdict
    assert 10 * RATE / seconds > FULL_RATE
