"""The stores and what they stand on, with a real broker: over restarts, with several writers, with topics that get lost."""

from __future__ import annotations

import multiprocessing
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from sluiceway.api.task import TopicPartition
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import AlreadyExistsError, ConnectError, FencedError, InternalTopicError, NotFoundError
from sluiceway.kafka.admin import create_topic, end_offsets, group_offsets, partition_count
from sluiceway.kafka.clients import TopicPartitionOffset, admin_client, consumer, consumer_config, producer, producer_config
from sluiceway.kafka.fenced_writer import FencedWriter
from sluiceway.kafka.kafka_based_log import LogRecord, TopicTail
from sluiceway.kafka.topic_writer import TopicWriter
from sluiceway.stack.broker import EmbeddedBroker
from sluiceway.storage import codec
from sluiceway.storage.config_backing_store import KafkaConfigBackingStore
from sluiceway.storage.model import ClusterState, RestartRequest, State, Status, TargetState, TaskId
from sluiceway.storage.offset_backing_store import KafkaOffsetBackingStore
from sluiceway.storage.status_backing_store import KafkaStatusBackingStore
from support.eventually import eventually

pytestmark = pytest.mark.kafka

RUNNING = Status(State.RUNNING, "w:1", 1, version="4.3.0")
Open = Callable[[Any], Any]


def worker_for(bootstrap: str, unique: Callable[[str], str], **properties: str) -> WorkerConfig:
    base = {"bootstrap.servers": bootstrap, "group.id": unique("group"), "offset.storage.partitions": "5"}
    for kind in ("config", "offset", "status"):
        base |= {f"{kind}.storage.topic": unique(kind), f"{kind}.storage.replication.factor": "1"}
    return WorkerConfig.of({**base, **properties})


@pytest.fixture
def worker(kafka_bootstrap: str, unique: Callable[[str], str]) -> WorkerConfig:
    return worker_for(kafka_bootstrap, unique)


@pytest.fixture
def opened() -> Iterator[Open]:
    """Start stores, and stop them at the end of the test."""
    with ExitStack() as stack:

        def start(store: Any) -> Any:
            store.start()
            stack.callback(store.stop)
            return store

        yield start


# Configs.


def test_configs_are_there_after_a_restart(worker: WorkerConfig, opened: Open) -> None:
    first = opened(KafkaConfigBackingStore(worker))
    first.put_connector("a", {"k": "ü😀"}, TargetState.PAUSED)
    first.put_task_configs("a", [{"x": "0"}])
    before = first.snapshot()
    first.stop()
    assert opened(KafkaConfigBackingStore(worker)).snapshot() == before


def test_a_put_is_seen_by_snapshot_when_it_returns(worker: WorkerConfig, opened: Open) -> None:
    store = opened(KafkaConfigBackingStore(worker))
    store.put_connector("a", {})
    for number in range(10):
        store.put_connector("a", {"n": str(number)})
        assert store.snapshot().connectors["a"].config == {"n": str(number), "name": "a"}


def test_starting_writing_and_hearing_are_fast(worker: WorkerConfig, opened: Open) -> None:
    writer = opened(KafkaConfigBackingStore(worker))
    writer.put_connector("a", {})
    reader = KafkaConfigBackingStore(worker)
    started = time.perf_counter()
    opened(reader)
    assert time.perf_counter() - started < 1.0
    heard: list[float] = []
    reader.on_change(lambda _kind, _name: heard.append(time.perf_counter()))
    put, seen = [], []
    for number in range(11):
        began = time.perf_counter()
        writer.put_target_state("a", TargetState.PAUSED)
        put.append(time.perf_counter() - began)
        eventually(lambda number=number: len(heard) > number)
        seen.append(heard[number] - began)
    assert statistics.median(put) < 0.1
    assert statistics.median(seen) < 0.05


def test_changes_by_another_writer_are_heard_by_kind(worker: WorkerConfig, opened: Open) -> None:
    reader, writer = opened(KafkaConfigBackingStore(worker)), opened(KafkaConfigBackingStore(worker))
    heard: list[tuple[str, str]] = []

    def fail(_kind: str, _name: str) -> None:
        raise RuntimeError("a listener's bug")

    reader.on_change(fail)
    reader.on_change(lambda kind, name: heard.append((kind, name)))
    writer.put_connector("a", {}, TargetState.PAUSED)
    writer.put_task_configs("a", [{"x": "0"}])
    writer.put_restart_request(RestartRequest("a", include_tasks=True))
    writer.remove_connector("a")
    eventually(lambda: len(heard) == 6)
    kinds = ["target-state", "connector", "tasks", "restart", "connector", "target-state"]
    assert heard == [(kind, "a") for kind in kinds]
    assert reader.take_restart_requests() == [RestartRequest("a", include_tasks=True)]
    assert reader.take_restart_requests() == []


def test_restart_requests_from_before_the_start_are_ignored(worker: WorkerConfig, opened: Open) -> None:
    opened(KafkaConfigBackingStore(worker)).put_restart_request(RestartRequest("a"))
    late = opened(KafkaConfigBackingStore(worker))
    late.refresh()
    assert late.take_restart_requests() == []


def test_a_connector_that_another_writer_made_is_found_at_once(worker: WorkerConfig, opened: Open) -> None:
    one, other = opened(KafkaConfigBackingStore(worker)), opened(KafkaConfigBackingStore(worker))
    for number in range(3):
        one.put_connector(f"a{number}", {})
        other.put_target_state(f"a{number}", TargetState.STOPPED)
        assert one.refresh().connectors[f"a{number}"].target_state is TargetState.STOPPED
    with pytest.raises(NotFoundError):
        other.put_target_state("b", TargetState.PAUSED)


def create_many(worker: WorkerConfig, who: int) -> None:
    """Run in a process of its own; an error ends it with exit code 1 and a traceback."""
    store = KafkaConfigBackingStore(worker)
    store.start()
    for number in range(20):
        store.put_connector(f"{who}-{number}", {"who": str(who)}, TargetState.PAUSED)
        store.put_task_configs(f"{who}-{number}", [{"x": "0"}, {"x": "1"}])
    store.stop()


def test_writers_in_several_processes_leave_nothing_half_written(worker: WorkerConfig, opened: Open) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=create_many, args=(worker, who)) for who in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0, 0]
    connectors = opened(KafkaConfigBackingStore(worker)).snapshot().connectors
    assert set(connectors) == {f"{who}-{number}" for who in range(2) for number in range(20)}
    for entry in connectors.values():
        assert entry.target_state is TargetState.PAUSED
        assert entry.task_configs == ({"x": "0"}, {"x": "1"})


def test_of_two_who_create_the_same_connector_one_is_refused(worker: WorkerConfig, opened: Open) -> None:
    stores = [opened(KafkaConfigBackingStore(worker)) for _ in range(2)]
    outcomes: list[tuple[str, str]] = []
    together = threading.Barrier(2)

    def create(name: str, who: int) -> None:
        def check(state: ClusterState) -> None:
            if state.entry(name) is not None:
                raise AlreadyExistsError(f"Connector {name} already exists")

        together.wait(30)
        try:
            stores[who].put_connector(name, {"who": str(who)}, check=check)
            outcomes.append((name, "created"))
        except AlreadyExistsError:
            outcomes.append((name, "refused"))

    names = [f"a{number}" for number in range(8)]
    threads = [threading.Thread(target=lambda who=who: [create(name, who) for name in names]) for who in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert sorted(outcomes) == sorted((name, outcome) for name in names for outcome in ("created", "refused"))


def test_a_writer_that_has_just_fenced_reads_on_before_it_decides(worker: WorkerConfig, opened: Open) -> None:
    one, late = opened(KafkaConfigBackingStore(worker)), opened(KafkaConfigBackingStore(worker))
    reading = threading.Event()
    record = late._log._on_record
    late._log._on_record = lambda each: (reading.wait(30), record(each))

    def check(state: ClusterState) -> None:
        if state.entry("a") is not None:
            raise AlreadyExistsError("Connector a already exists")

    one.put_connector("a", {"who": "one"}, check=check)
    assert late.snapshot().names() == []
    threading.Timer(1.0, reading.set).start()
    with pytest.raises(AlreadyExistsError):
        late.put_connector("a", {"who": "late"}, check=check)
    assert one.refresh().connectors["a"].config == {"who": "one", "name": "a"}


# Statuses.


def test_statuses_are_seen_at_once_by_who_wrote_them_and_soon_by_others(worker: WorkerConfig, opened: Open) -> None:
    mine, other = opened(KafkaStatusBackingStore(worker)), opened(KafkaStatusBackingStore(worker))
    before = int(time.time() * 1000)
    mine.put_connector("a", RUNNING)
    mine.put_task(TaskId("a", 0), RUNNING)
    mine.put_topic("a", 0, "t")
    assert mine.connector("a") == RUNNING
    assert before - 1000 <= mine.connector("a").timestamp <= before + 60_000
    assert (mine.tasks("a"), mine.topics("a")) == ({0: RUNNING}, ["t"])
    other.refresh()
    assert (other.connector("a"), other.tasks("a"), other.topics("a")) == (RUNNING, {0: RUNNING}, ["t"])


def test_removing_a_connector_leaves_only_tombstones(worker: WorkerConfig, opened: Open) -> None:
    store = opened(KafkaStatusBackingStore(worker))
    opened(KafkaStatusBackingStore(worker, reading=False)).put_task(TaskId("a", 3), RUNNING)
    store.put_connector("a", RUNNING)
    store.put_topic("a", 0, "t")
    store.put_connector("b", RUNNING)
    store.remove_connector("a")
    again = opened(KafkaStatusBackingStore(worker))
    assert (again.connector("a"), again.tasks("a"), again.topics("a")) == (None, {}, [])
    assert again.connector("b") == RUNNING


def test_a_store_that_only_writes_cannot_be_asked(worker: WorkerConfig, opened: Open) -> None:
    store = opened(KafkaStatusBackingStore(worker, reading=False))
    with pytest.raises(ConnectError, match="for reading"):
        store.connector("a")


def test_a_drivers_lease_writes_statuses_until_a_newer_driver_fences_it(worker: WorkerConfig, opened: Open) -> None:
    statuses = opened(KafkaStatusBackingStore(worker))
    name = f"{worker.group_id}-a-driver"
    old, new = (FencedWriter(worker, name, name) for _ in range(2))

    def write(lease: FencedWriter, generation: int) -> None:
        status = Status(State.RUNNING, "w", generation)
        key, value = codec.encode_connector_status("a", status)
        lease.write([(worker.status_topic, key, value)])

    old.fence()
    write(old, 1)
    new.fence()
    with pytest.raises(FencedError, match=name):
        write(old, 99)
    write(new, 2)
    eventually(lambda: statuses.connector("a") and statuses.connector("a").generation == 2)
    for lease in (old, new):
        lease.close()


# Offsets.


def test_offsets_are_there_after_a_restart_and_deleted_ones_are_not(worker: WorkerConfig, opened: Open) -> None:
    store = opened(KafkaOffsetBackingStore(worker))
    partitions = [{"file": str(number)} for number in range(10)]
    store.put("a", [(partition, {"position": number}) for number, partition in enumerate(partitions)])
    store.put("b", [(partitions[0], {"position": 100})])
    store.put("a", [(partitions[9], None)])
    store.stop()
    again = opened(KafkaOffsetBackingStore(worker))
    assert again.get("a", [partitions[3], {"file": "unknown"}, partitions[9]]) == [{"position": 3}, None, None]
    assert again.get("b", partitions[:1]) == [{"position": 100}]
    stored = again.all("a")
    assert sorted(offset["position"] for _, offset in stored) == list(range(9))


def test_offsets_of_a_tasks_transaction_count_once_it_is_committed(worker: WorkerConfig, opened: Open) -> None:
    store = opened(KafkaOffsetBackingStore(worker))
    partition = {"file": "x"}
    key, value = codec.encode_offset("a", partition, {"position": 1})
    task = producer(producer_config(worker, "task", {"transactional.id": worker.group_id, "delivery.timeout.ms": "10000"}))
    task.init_transactions(30)
    task.begin_transaction()
    task.produce(worker.offset_topic, key=key, value=value)
    task.flush(10)
    assert store.get("a", [partition]) == [None]
    task.commit_transaction(10)
    eventually(lambda: store.get("a", [partition]) == [{"position": 1}])
    task.begin_transaction()
    task.produce(worker.offset_topic, key=key, value=codec.encode_offset("a", partition, {"position": 2})[1])
    task.abort_transaction(10)
    assert store.get("a", [partition]) == [{"position": 1}]


# Transactions, tails, groups.


def test_a_fenced_writer_leaves_nothing_that_a_reader_sees(worker: WorkerConfig, unique: Callable[[str], str]) -> None:
    topic = unique("fenced")
    admin = admin_client(worker)
    create_topic(admin, topic, 2, 1)
    old, new = (FencedWriter(worker, topic, topic) for _ in range(2))
    old.fence()
    assert old.write([(topic, b"a", b"1")])
    new.fence()
    for _ in range(2):
        with pytest.raises(ConnectError):
            old.write([(topic, b"a", b"stale"), (topic, b"b", b"stale")])
    new.write([(topic, b"a", b"2"), (topic, b"b", None)])
    tail = TopicTail(worker, topic, {TopicPartition(topic, partition): 0 for partition in range(2)})
    records: list[LogRecord] = []
    eventually(lambda: records.extend(tail.poll(1.0)) or len(records) >= 3)
    assert {(record.key, record.value) for record in records} == {(b"a", b"1"), (b"a", b"2"), (b"b", None)}
    tail.close()
    old.fence()  # and it may take over again
    old.write([(topic, b"a", b"3")])
    old.close()
    new.close()


def test_a_tail_starts_where_it_is_told_and_follows_several_topics(worker: WorkerConfig, unique: Callable[[str], str]) -> None:
    admin = admin_client(worker)
    topics = [unique("tail") for _ in range(2)]
    writer = TopicWriter(worker, "w")
    for topic in topics:
        create_topic(admin, topic, 1, 1)
        writer.write([(topic, b"before", None)])
    tail = TopicTail(worker, "tail", end_offsets(admin, [TopicPartition(topic, 0) for topic in topics]))
    assert tail.poll(0.3) == []
    delays = []
    for number in range(10):
        began = time.perf_counter()
        topic = topics[number % 2]
        writer.write([(topic, b"k", b"%d" % number)])
        [record] = eventually(lambda: tail.poll(1.0))
        delays.append(time.perf_counter() - began)
        assert (record.topic, record.key, record.value) == (topic, b"k", b"%d" % number)
    assert statistics.median(delays) < 0.05
    tail.close()


def test_a_tail_of_an_offset_that_is_not_there_is_an_error(worker: WorkerConfig, unique: Callable[[str], str]) -> None:
    topic = unique("tail")
    create_topic(admin_client(worker), topic, 1, 1)
    tail = TopicTail(worker, "tail", {TopicPartition(topic, 0): 1000})
    with pytest.raises(InternalTopicError, match=topic):
        eventually(lambda: tail.poll(1.0))
    tail.close()


def test_a_groups_offsets_are_what_it_committed(worker: WorkerConfig, unique: Callable[[str], str]) -> None:
    admin, topic, group = admin_client(worker), unique("groups"), unique("connect-sink")
    create_topic(admin, topic, 3, 1)
    assert group_offsets(admin, group) == {}
    member = consumer(consumer_config(worker, "c", group))
    member.commit(offsets=[TopicPartitionOffset(topic, 0, 5), TopicPartitionOffset(topic, 2, 7)], asynchronous=False)
    member.close()
    assert group_offsets(admin, group) == {TopicPartition(topic, 0): 5, TopicPartition(topic, 2): 7}


# Loss.


def delete(worker: WorkerConfig, topic: str) -> None:
    admin = admin_client(worker)
    for future in admin.delete_topics([topic]).values():
        future.result()
    eventually(lambda: partition_count(admin, topic) is None)


def test_a_deleted_topic_is_an_error_and_not_an_empty_one(worker: WorkerConfig, opened: Open) -> None:
    offsets, configs = opened(KafkaOffsetBackingStore(worker)), opened(KafkaConfigBackingStore(worker))
    offsets.put("a", [({"p": 1}, {"o": 1})])
    configs.put_connector("a", {})
    delete(worker, worker.offset_topic)
    delete(worker, worker.config_topic)
    with pytest.raises(InternalTopicError, match=worker.offset_topic):
        offsets.get("a", [{"p": 1}])
    with pytest.raises(InternalTopicError, match=worker.config_topic):
        configs.refresh()


def test_a_deleted_offsets_topic_is_noticed_without_being_read_and_not_made_anew(worker: WorkerConfig, opened: Open) -> None:
    offsets = opened(KafkaOffsetBackingStore(worker))
    offsets.put("a", [({"p": 1}, {"o": 1})])
    delete(worker, worker.offset_topic)
    with pytest.raises(InternalTopicError, match=worker.offset_topic):
        offsets.put("a", [({"p": 1}, {"o": 2})])
    with pytest.raises(InternalTopicError, match=worker.offset_topic):
        offsets.for_transaction("a", [({"p": 1}, {"o": 2})])
    assert partition_count(admin_client(worker), worker.offset_topic) is None


def test_an_offsets_topic_that_was_made_anew_by_others_takes_no_offsets(worker: WorkerConfig, opened: Open) -> None:
    offsets = opened(KafkaOffsetBackingStore(worker))
    offsets.put("a", [({"p": 1}, {"o": 1})])
    delete(worker, worker.offset_topic)
    create_topic(admin_client(worker), worker.offset_topic, 1, 1)

    def refused() -> bool:
        try:
            offsets.put("a", [({"p": 1}, {"o": 2})])
        except InternalTopicError:
            return True
        return False

    eventually(refused)


def test_a_lost_offsets_topic_is_not_made_anew_where_sources_have_run(worker: WorkerConfig, opened: Open) -> None:
    configs, offsets = opened(KafkaConfigBackingStore(worker)), opened(KafkaOffsetBackingStore(worker))
    configs.put_connector("a", {"connector.class": "FileStreamSource", "file": "f", "topic": "t"})
    delete(worker, worker.offset_topic)
    KafkaOffsetBackingStore(worker).start()  # it has not had tasks: nothing can be lost
    offsets.stop()
    configs.put_task_configs("a", [{"task": "0"}])
    delete(worker, worker.offset_topic)
    with pytest.raises(InternalTopicError, match=rf"(?s){worker.offset_topic}.*have run \(a\).*kafka-topics.sh --create"):
        KafkaOffsetBackingStore(worker).start()
    assert partition_count(admin_client(worker), worker.offset_topic) is None
    create_topic(admin_client(worker), worker.offset_topic, 5, 1, {"cleanup.policy": "compact"})
    opened(KafkaOffsetBackingStore(worker))


def test_a_lost_config_topic_is_not_taken_for_what_it_said(worker: WorkerConfig, opened: Open) -> None:
    configs = opened(KafkaConfigBackingStore(worker))
    configs.put_connector("a", {})
    delete(worker, worker.config_topic)

    def refused() -> bool:
        try:
            configs.snapshot()
        except InternalTopicError:
            return True
        return False

    eventually(refused, within=60)


def test_a_topic_made_anew_is_an_error_and_not_an_empty_one(worker: WorkerConfig, opened: Open) -> None:
    offsets = opened(KafkaOffsetBackingStore(worker))
    offsets.put("a", [({"p": 1}, {"o": 1})])
    offsets.get("a", [])
    delete(worker, worker.offset_topic)
    create_topic(admin_client(worker), worker.offset_topic, 5, 1, {"cleanup.policy": "compact"})
    for _ in range(2):
        with pytest.raises(InternalTopicError, match=worker.offset_topic):
            offsets.get("a", [{"p": 1}])


def test_the_stores_go_on_after_a_restart_of_the_broker(tmp_path: Path, unique: Callable[[str], str], opened: Open) -> None:
    broker = EmbeddedBroker(tmp_path)
    worker = worker_for(broker.start(), unique)
    try:
        configs, offsets = opened(KafkaConfigBackingStore(worker)), opened(KafkaOffsetBackingStore(worker))
        configs.put_connector("a", {"k": "1"})
        offsets.put("a", [({"p": 1}, {"o": 1})])
        broker.stop()
        assert configs.snapshot().names() == ["a"]  # what is known stays known
        assert broker.start() == worker.bootstrap_servers
        offsets.put("a", [({"p": 1}, {"o": 2})])
        assert offsets.get("a", [{"p": 1}]) == [{"o": 2}]
        configs.put_connector("a", {"k": "2"})
        configs.put_connector("b", {})
        assert configs.refresh().names() == ["a", "b"]
        assert configs.snapshot().connectors["a"].config == {"k": "2", "name": "a"}
        for store in (configs, offsets):
            store.stop()
    finally:
        broker.stop()
