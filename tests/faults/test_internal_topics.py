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
from support.faults.world import RATE, World

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
def topic(place: World) -> str:
    return place.source()


def run(place: World, cluster: Cluster, topic: str, row: Row | None = None) -> None:
    """Run the source for two seconds' records and drain it, so that the stored offset is the last record's."""
    driver = place.driver()
    started = time.monotonic()
    cluster.grown(topic, 2 * RATE, driver)
    if row is not None:
        row.recovered(time.monotonic() - started)
    place.drain(driver)


def judge(place: World, topic: str, row: Row) -> None:
    verdict = place.verdict(topic)
    row.judge(verdict)
    assert verdict.exactly_once, verdict


def own_key(place: World) -> bytes:
    return encode_offset_key(place.name, {"id": 0})


@pytest.mark.matrix(29)
def test_invalid_records_in_all_internal_topics_are_skipped(place: World, topic: str, cluster: Cluster, row: NewRow) -> None:
    made = row("garbage, tombstones and empty records in all three topics", f"{CONTINUED}, RUNNING")
    run(place, cluster, topic)
    for internal in (place.worker.offset_topic, place.worker.config_topic, place.worker.status_topic):
        cluster.send(internal, RUBBISH)
    run(place, cluster, topic, made)
    assert place.name in place.herder.connectors()
    judge(place, topic, made)


@pytest.mark.matrix(29)
@pytest.mark.parametrize("value", [b"\xff{no", b""], ids=["garbage", "0 bytes"])
def test_an_unreadable_offset_fails_the_source_and_does_not_count_as_missing(
    place: World, topic: str, cluster: Cluster, row: NewRow, value: bytes
) -> None:
    made = row(f"the source's own offset is {value!r}", f"FAILED, nothing written; once it is mended {CONTINUED}")
    run(place, cluster, topic)
    before = cluster.end(topic)
    [(partition, offset)] = place.stored_offsets()
    cluster.send(place.worker.offset_topic, [(own_key(place), value)])
    driver = place.driver()
    trace = place.failed()
    assert "cannot be read" in trace
    assert place.worker.offset_topic in trace
    place.drain(driver)
    assert cluster.end(topic) == before
    cluster.send(place.worker.offset_topic, [encode_offset(place.name, partition, offset)])
    run(place, cluster, topic, made)
    judge(place, topic, made)


@pytest.mark.matrix(29)
def test_a_tombstone_resets_the_sources_offset(place: World, topic: str, cluster: Cluster, row: NewRow) -> None:
    made = row("the source's own offset is a tombstone", "read again from 0, as after DELETE /offsets; 0 lost")
    run(place, cluster, topic)
    first = cluster.end(topic)
    cluster.send(place.worker.offset_topic, [(own_key(place), None)])
    run(place, cluster, topic, made)
    again = cluster.end(topic) - first
    verdict = place.verdict(topic)
    made.judge(verdict)
    assert verdict.lost == 0, verdict
    assert verdict.duplicated == min(first, again), "it is read again from 0"


@pytest.mark.matrix(29)
def test_compaction_of_the_offsets_topic_keeps_the_latest_offsets(
    place: World, topic: str, cluster: Cluster, row: NewRow
) -> None:
    made = row("offsets topic compacted between two runs", CONTINUED)
    run(place, cluster, topic)
    key = own_key(place)

    def mine(left: Sequence[StoredRecord]) -> int:
        return sum(each.key == key for each in left)

    before = mine(cluster.messages(place.worker.offset_topic))
    assert before > 1
    left = cluster.compact(place.worker.offset_topic, lambda left: mine(left) == 1)
    run(place, cluster, topic, made)
    judge(place, topic, made)
    made.seen += f"; {before} offset records, then {mine(left)}"


@pytest.mark.matrix(29)
@pytest.mark.parametrize("store", ["offset", "config", "status"])
def test_an_internal_topic_that_is_not_compacted_is_refused(
    place: World, topic: str, cluster: Cluster, row: NewRow, store: str
) -> None:
    made = row(f"{store} topic with cleanup.policy=delete", f"refused, nothing written; once it is mended {CONTINUED}")
    run(place, cluster, topic)
    internal = place.worker.text(f"{store}.storage.topic")
    before = cluster.end(topic)
    cluster.set(internal, cleanup_policy="delete")
    driver = place.driver()
    eventually(lambda: not driver.is_running(), within=60, what=f"the end of {driver.log}")
    said = driver.log.read_text()
    assert f"'{internal}' supplied via the '{store}.storage.topic' property is required to have 'cleanup.policy=compact'" in said
    assert cluster.end(topic) == before
    cluster.set(internal, cleanup_policy="compact")
    run(place, cluster, topic, made)
    judge(place, topic, made)


@pytest.mark.matrix(29)
@pytest.mark.parametrize("running", [True, False], ids=["while it runs", "between two runs"])
def test_a_deleted_offsets_topic_fails_the_source_and_does_not_count_as_empty(
    place: World, topic: str, cluster: Cluster, row: NewRow, running: bool
) -> None:
    when = "while it runs" if running else "between two runs"
    made = row(f"offsets topic deleted {when}", f"not RUNNING, never from 0 again; once it is restored {CONTINUED}")
    run(place, cluster, topic)
    internal = place.worker.offset_topic
    if running:
        driver = place.driver()
        place.running()
        eventually(lambda: place.stored_offsets(), what="an offset")
        cluster.delete(internal)
    else:
        backup = place.stored_offsets()
        cluster.delete(internal)
        driver = place.driver()
    eventually(
        lambda: not driver.is_running() or "FAILED" in (place.states()[0], *place.states()[1]),
        within=90,
        what=f"a driver that stops, or FAILED; see {driver.log}",
    )
    place.drain(driver)
    verdict = place.verdict_so_far(topic)
    made.judge(verdict)
    assert verdict.exactly_once, verdict
    if not running:
        if internal not in cluster.topics():
            cluster.create(internal, place.worker.number("offset.storage.partitions"), cleanup_policy="compact")
        cluster.send(internal, [encode_offset(place.name, partition, offset) for partition, offset in backup])
        run(place, cluster, topic, made)
        judge(place, topic, made)


@pytest.mark.matrix(30)
def test_task_configs_of_a_deleted_connector_are_not_used_again(place: World, cluster: Cluster, row: NewRow) -> None:
    made = row("connector of 3 tasks deleted, compacted, made anew with 1", f"{CONTINUED}, one task, the new one's")
    old, new = cluster.create(f"{place.name}-old"), cluster.create(f"{place.name}-new")
    config = {"connector.class": "sluiceway.connectors.verifiable.source.VerifiableSourceConnector", "throughput": str(RATE)}
    place.herder.create(place.name, {**config, "topic": old, "tasks.max": "3"})
    first = place.driver(master="local[4]")
    eventually(lambda: place.states() == ("RUNNING", ["RUNNING"] * 3), within=90, what=f"3 tasks\n{first.log_tail(20)}")
    place.herder.delete(place.name)
    eventually(lambda: not first.is_running(), within=60, what="the end of the first one's driver")
    deleted = encode_connector(place.name, None)[0]
    stale = f"task-{TaskId(place.name, 2)}".encode()

    def without_tombstone(left: Sequence[StoredRecord]) -> bool:
        keys = [each.key for each in left]
        return stale in keys and deleted not in keys

    cluster.compact(place.worker.config_topic, without_tombstone)
    before = cluster.end(old)
    place.herder.create(place.name, {**config, "topic": new, "tasks.max": "1"})
    started = time.monotonic()
    second = place.driver()
    place.running()
    made.recovered(time.monotonic() - started)
    cluster.grown(new, 2 * RATE, second)
    assert len(place.herder.task_infos(place.name)) == 1
    assert set(place.herder.status(place.name).tasks) == {0}
    place.drain(second)
    assert cluster.end(old) == before
    # Offsets of a deleted connector remain, as in Connect, so the new task 0 continues where the old one stopped.
    fresh = list(place.seen(new))
    assert {each.task for each in fresh} == {0}
    verdict = check([*(each for each in place.seen(old) if each.task == 0), *fresh])
    made.judge(verdict)
    assert verdict.exactly_once, verdict
