"""A driver on the same internal topics and group.id as a running Kafka Connect worker."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sluiceway.connectors.verifiable.checker import check
from sluiceway.connectors.verifiable.numbering import NumberedRecord, task_and_seqno
from support import peer
from support.eventually import LIMIT, eventually
from support.faults.cluster import Cluster
from support.faults.feed import Feed
from support.faults.rows import NewRow
from support.faults.worker_group import WorkerGroup, worker_group

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.peer]

STRING = "org.apache.kafka.connect.storage.StringConverter"
CONVERTERS = {"key.converter": STRING, "value.converter": STRING}
LINES = 200  # a second


class Growing:
    """A file to which a thread appends numbered lines at a steady rate."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.last = -1
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="growing", daemon=True)
        file.touch()
        self._thread.start()

    def _run(self) -> None:
        with self.file.open("a") as file:
            while not self._stopping.wait(0.05):
                numbers = range(self.last + 1, self.last + 1 + LINES // 20)
                file.writelines(f'{{"task":0,"seqno":{number}}}\n' for number in numbers)
                file.flush()
                self.last = numbers[-1]

    def finish(self) -> dict[int, int]:
        self._stopping.set()
        self._thread.join(LIMIT)
        return {0: self.last}


@pytest.fixture
def growing(tmp_path: Path) -> Iterator[Growing]:
    made = Growing(tmp_path / "lines")
    yield made
    made.finish()


@pytest.fixture
def group(kafka_bootstrap: str, tmp_path: Path) -> Iterator[WorkerGroup]:
    with worker_group(kafka_bootstrap, tmp_path, CONVERTERS) as made:
        yield made


def connect(group: WorkerGroup) -> peer.PeerDistributed:
    topics = (group.worker.config_topic, group.worker.offset_topic, group.worker.status_topic)
    return peer.PeerDistributed(group.address, group.worker.group_id, group.folder / "peer", topics, CONVERTERS)


def lines_of(file: Path) -> Iterator[NumberedRecord]:
    """Yield the records in a file sink's complete lines."""
    for line in file.read_bytes().rpartition(b"\n")[0].splitlines():
        yield NumberedRecord(*task_and_seqno(None, line))


@pytest.mark.matrix(43)
@pytest.mark.parametrize("earlier", [False, True], ids=["Sluiceway first", "after an earlier worker"])
def test_a_sink_has_committed_before_kafka_connect_runs_it(
    group: WorkerGroup, row: NewRow, tmp_path: Path, earlier: bool
) -> None:
    made = row(
        "real Kafka Connect on the same topics as a sink" + ", which it has run before" * earlier,
        "our driver ends after a last commit; 0 lost, 0 repeated",
    )
    file = tmp_path / "sunk"
    file.touch()
    feed = Feed(group.address, f"{group.name}-lines", rate=LINES // 2, partitions=2)
    group.herder.create(group.name, {"connector.class": "FileStreamSink", "file": str(file), "topics": feed.topic})
    theirs = connect(group)
    if earlier:  # each start of a worker raises the generation of the group, so that the next one's is higher than ours
        theirs.start()
        peer.wait_for_state(theirs.rest, group.name, "RUNNING")
        theirs.stop()

    def written() -> int:
        return check(lines_of(file)).total

    try:
        with feed:
            ours = group.driver()
            eventually(lambda: written() > 2 * LINES, what=f"lines\n{ours.log_tail(20)}")
            theirs.start()
            began = time.monotonic()
            eventually(lambda: not ours.is_running(), what=f"the end of our driver\n{ours.log_tail(20)}")
            made.recovered(time.monotonic() - began)
            assert "Stopping after a last commit" in ours.log.read_text()
            peer.wait_for_state(theirs.rest, group.name, "RUNNING")
            before = written()
            eventually(lambda: written() > before + LINES, what="lines of Kafka Connect")
            sent = feed.finish()
        eventually(lambda: check(lines_of(file), sent=sent).lost == 0, what="all lines")
        peer.wait_for_state(theirs.rest, group.name, "RUNNING")
    finally:
        theirs.stop()
    verdict = check(lines_of(file), sent=sent)
    made.judge(verdict)
    assert (verdict.lost, verdict.duplicated) == (0, 0), verdict


@pytest.mark.matrix(43)
@pytest.mark.parametrize("first", ["Kafka Connect", "Sluiceway"])
def test_a_driver_beside_kafka_connect_ends_and_loses_nothing(
    group: WorkerGroup, growing: Growing, row: NewRow, first: str
) -> None:
    made = row(
        f"real Kafka Connect on the same topics, {first} first",
        "our driver ends; 0 lost, at most one batch repeated",
    )
    cluster = Cluster(group.address)
    topic = cluster.create(f"{group.name}-lines")
    group.herder.create(group.name, {"connector.class": "FileStreamSource", "file": str(growing.file), "topic": topic})
    theirs = connect(group)
    try:
        if first == "Sluiceway":
            ours = group.driver()
            eventually(lambda: cluster.end(topic) > 2 * LINES, what=f"lines\n{ours.log_tail(20)}")
            theirs.start()
        else:
            theirs.start()
            peer.wait_for_state(theirs.rest, group.name, "RUNNING")
            eventually(lambda: cluster.end(topic) > 2 * LINES, what="lines")
            ours = group.driver()
        began = time.monotonic()
        eventually(lambda: not ours.is_running(), what=f"the end of our driver\n{ours.log_tail(20)}")
        made.recovered(time.monotonic() - began)
        assert f"Kafka Connect runs connector {group.name}" in ours.log.read_text()
        peer.wait_for_state(theirs.rest, group.name, "RUNNING")
        sent = growing.finish()
        eventually(lambda: check(group.seen(topic), sent=sent).lost == 0, what="all lines")
        peer.wait_for_state(theirs.rest, group.name, "RUNNING")
    finally:
        theirs.stop()
    verdict = check(group.seen(topic), sent=sent)
    made.judge(verdict)
    assert verdict.duplicated <= (0 if first == "Kafka Connect" else 30 * LINES), verdict
