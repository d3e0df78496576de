"""The three internal topics with invalid records, compacted, not compacted, and deleted."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import pytest

from sluiceway.connectors.verifiable.checker import check
from sluiceway.storage.codec import encode_connector, encode_offset, encode_offset_key
from sluiceway.storage.model import TaskId
from support.eventually import eventually
from support.faults.broker import FaultyBroker
from support.faults.cluster import Cluster, StoredRecord
from support.faults.rows import NewRow, Row
from support.faults.worker_group import RATE, WorkerGroup

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

CONTINUED = "0 lost, 0 duplicated"
RUBBISH = [
    (b"\xff\xfe\x00", b"\xff\xfe\x00"),
    (None, b"{}"),
    (None, None),
    (b"", b""),
    (b"{not JSON", b"{}"),
    (b'"text"', b"1"),
    (b'["only one"]', b"{}"),
    (b'["other",{"id":0}]', b"{not JSON"),
    (b'["other",{"id":1}]', b""),
    (b'["gone",{"id":0}]', None),
    (b"connector-", b"[]"),
    (b"task-x-y", b"{}"),
    (b"commit-nobody", b'{"tasks":"many"}'),
    (b"connector-broken", b'{"properties":1}'),
    (b"target-state-nobody", b'{"state":"FLYING"}'),
    (b"status-connector-nobody", b"7"),
    (b"status-task-nobody", b"{}"),
    (b"restart-connector-nobody", b"never"),
    (b"unheard-of", b"x" * 100_000),
]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyBroker]:
    """A broker that compacts within a second or two."""
    made = FaultyBroker(tmp_path_factory.mktemp("broker"), {"log.cleaner.backoff.ms": "200", "log.initial.task.delay.ms": "500"})
    try:
        made.start()
        yield made
    finally:
        made.close()


@pytest.fixture
def topic(group: WorkerGroup) -> str:
    return group.source()


def run(group: WorkerGroup, cluster: Cluster, topic: str, row: Row | None = None) -> None:
    """Run the source for two seconds' records and drain it, so that the stored offset is the last record's."""
    driver = group.driver()
    started = time.monotonic()
    cluster.grown(topic, 2 * RATE, driver)
    if row is not None:
        row.recovered(time.monotonic() - started)
    group.drain(driver)


def judge(group: WorkerGroup, topic: str, row: Row) -> None:
    verdict = group.verdict(topic)
    row.judge(verdict)
    assert verdict.exactly_once, verdict


def own_key(group: WorkerGroup) -> bytes:
    return encode_offset_key(group.name, {"id": 0})


@pytest.mark.matrix(29)
def test_invalid_records_in_all_internal_topics_are_skipped(
    group: WorkerGroup, topic: str, cluster: Cluster, row: NewRow
) -> None:
    made = row("garbage, tombstones and empty records in all three topics", f"{CONTINUED}, RUNNING")
    run(group, cluster, topic)
    for internal in (group.worker.offset_topic, group.worker.config_topic, group.worker.status_topic):
        cluster.send(internal, RUBBISH)
    run(group, cluster, topic, made)
    assert group.name in group.herder.connectors()
    judge(group, topic, made)


@pytest.mark.matrix(29)
@pytest.mark.parametrize("value", [b"\xff{no", b""], ids=["garbage", "0 bytes"])
def test_an_unreadable_offset_fails_the_source_and_does_not_count_as_missing(
    group: WorkerGroup, topic: str, cluster: Cluster, row: NewRow, value: bytes
) -> None:
    made = row(f"the source's own offset is {value!r}", f"FAILED, nothing written; once it is mended {CONTINUED}")
    run(group, cluster, topic)
    before = cluster.end(topic)
    [(partition, offset)] = group.stored_offsets()
    cluster.send(group.worker.offset_topic, [(own_key(group), value)])
    driver = group.driver()
    trace = group.failed()
    assert "cannot be read" in trace
    assert group.worker.offset_topic in trace
    group.drain(driver)
    assert cluster.end(topic) == before
    cluster.send(group.worker.offset_topic, [encode_offset(group.name, partition, offset)])
    run(group, cluster, topic, made)
    judge(group, topic, made)


@pytest.mark.matrix(29)
def test_a_tombstone_resets_the_sources_offset(group: WorkerGroup, topic: str, cluster: Cluster, row: NewRow) -> None:
    made = row("the source's own offset is a tombstone", "read again from 0, as after DELETE /offsets; 0 lost")
    run(group, cluster, topic)
    first = cluster.end(topic)
    cluster.send(group.worker.offset_topic, [(own_key(group), None)])
    run(group, cluster, topic, made)
    again = cluster.end(topic) - first
    verdict = group.verdict(topic)
    made.judge(verdict)
    assert verdict.lost == 0, verdict
    assert verdict.duplicated == min(first, again), "it is read again from 0"


@pytest.mark.matrix(29)
def test_compaction_of_the_offsets_topic_keeps_the_latest_offsets(
    group: WorkerGroup, topic: str, cluster: Cluster, row: NewRow
) -> None:
    made = row("offsets topic compacted between two runs", CONTINUED)
    run(group, cluster, topic)
    key = own_key(group)

    def mine(left: Sequence[StoredRecord]) -> int:
        return sum(each.key == key for each in left)

    before = mine(cluster.messages(group.worker.offset_topic))
    assert before > 1
    left = cluster.compact(group.worker.offset_topic, lambda left: mine(left) == 1)
    run(group, cluster, topic, made)
    judge(group, topic, made)
    made.seen += f"; {before} offset records, then {mine(left)}"


@pytest.mark.matrix(29)
@pytest.mark.parametrize("store", ["offset", "config", "status"])
def test_an_internal_topic_that_is_not_compacted_is_refused(
    group: WorkerGroup, topic: str, cluster: Cluster, row: NewRow, store: str
) -> None:
    made = row(f"{store} topic with cleanup.policy=delete", f"refused, nothing written; once it is mended {CONTINUED}")
    run(group, cluster, topic)
    internal = group.worker.text(f"{store}.storage.topic")
    before = cluster.end(topic)
    cluster.set(internal, cleanup_policy="delete")
    driver = group.driver()
    eventually(lambda: not driver.is_running(), what=f"the end of {driver.log}")
    said = driver.log.read_text()
    assert f"'{internal}' supplied via the '{store}.storage.topic' property is required to have 'cleanup.policy=compact'" in said
    assert cluster.end(topic) == before
    cluster.set(internal, cleanup_policy="compact")
    run(group, cluster, topic, made)
    judge(group, topic, made)


@pytest.mark.matrix(29)
@pytest.mark.parametrize("running", [True, False], ids=["while it runs", "between two runs"])
def test_a_deleted_offsets_topic_fails_the_source_and_does_not_count_as_empty(
    group: WorkerGroup, topic: str, cluster: Cluster, row: NewRow, running: bool
) -> None:
    when = "while it runs" if running else "between two runs"
    made = row(f"offsets topic deleted {when}", f"not RUNNING, never from 0 again; once it is restored {CONTINUED}")
    run(group, cluster, topic)
    internal = group.worker.offset_topic
    if running:
        driver = group.driver()
        group.running()
        eventually(lambda: group.stored_offsets(), what="an offset")
        cluster.delete(internal)
    else:
        backup = group.stored_offsets()
        cluster.delete(internal)
        driver = group.driver()
    eventually(
        lambda: not driver.is_running() or "FAILED" in (group.states()[0], *group.states()[1]),
        what=f"a driver that stops, or FAILED; see {driver.log}",
    )
    group.drain(driver)
    verdict = group.verdict_so_far(topic)
    made.judge(verdict)
    assert verdict.exactly_once, verdict
    if not running:
        if internal not in cluster.topics():
            cluster.create(internal, group.worker.number("offset.storage.partitions"), cleanup_policy="compact")
        cluster.send(internal, [encode_offset(group.name, partition, offset) for partition, offset in backup])
        run(group, cluster, topic, made)
        judge(group, topic, made)


@pytest.mark.matrix(30)
def test_task_configs_of_a_deleted_connector_are_not_used_again(group: WorkerGroup, cluster: Cluster, row: NewRow) -> None:
    made = row("connector of 3 tasks deleted, compacted, created again with 1", f"{CONTINUED}, one task, the new one's")
    old, new = cluster.create(f"{group.name}-old"), cluster.create(f"{group.name}-new")
    config = {"connector.class": "sluiceway.connectors.verifiable.source.VerifiableSourceConnector", "throughput": str(RATE)}
    group.herder.create(group.name, {**config, "topic": old, "tasks.max": "3"})
    first = group.driver(master="local[4]")
    eventually(lambda: group.states() == ("RUNNING", ["RUNNING"] * 3), what=f"3 tasks\n{first.log_tail(20)}")
    group.herder.delete(group.name)
    eventually(lambda: not first.is_running(), what="the end of the first one's driver")
    deleted = encode_connector(group.name, None)[0]
    stale = f"task-{TaskId(group.name, 2)}".encode()

    def without_tombstone(left: Sequence[StoredRecord]) -> bool:
        keys = [each.key for each in left]
        return stale in keys and deleted not in keys

    cluster.compact(group.worker.config_topic, without_tombstone)
    before = cluster.end(old)
    group.herder.create(group.name, {**config, "topic": new, "tasks.max": "1"})
    started = time.monotonic()
    second = group.driver()
    group.running()
    made.recovered(time.monotonic() - started)
    cluster.grown(new, 2 * RATE, second)
    assert len(group.herder.task_infos(group.name)) == 1
    assert set(group.herder.status(group.name).tasks) == {0}
    group.drain(second)
    assert cluster.end(old) == before
    # Offsets of a deleted connector remain, as in Connect, so the new task 0 continues where the old one stopped.
    fresh = list(group.seen(new))
    assert {each.task for each in fresh} == {0}
    verdict = check([*(each for each in group.seen(old) if each.task == 0), *fresh])
    made.judge(verdict)
    assert verdict.exactly_once, verdict
