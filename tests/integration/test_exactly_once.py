"""Exactly-once sources on a real broker: what readers of committed records see, whatever happens to the tasks."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from sluiceway.api import Offset, Partition, SourceRecord, TopicPartition
from sluiceway.config.worker import WorkerConfig
from sluiceway.connectors.verifiable.checker import Verdict, check
from sluiceway.connectors.verifiable.numbering import TopicRecord, from_topic
from sluiceway.data import STRING_SCHEMA
from sluiceway.errors import FencedError
from sluiceway.kafka.admin import create_topic, end_offsets, partition_count
from sluiceway.kafka.clients import admin_client
from sluiceway.kafka.fenced_writer import FencedWriter
from sluiceway.runtime.interrupts import Abandoned
from sluiceway.runtime.task import TaskCommand
from sluiceway.storage.config_backing_store import KafkaConfigBackingStore
from sluiceway.storage.connector_offset_backing_store import ConnectorOffsetBackingStore
from sluiceway.storage.factory import open_source_offsets
from sluiceway.storage.model import State
from sluiceway.storage.offset_backing_store import KafkaOffsetBackingStore
from sluiceway.worker.zombie_fencing import fence_earlier_tasks
from support.engine import RunningTask
from support.engine_connectors import ACKNOWLEDGED_SOURCE, SOURCE, Script, script
from support.eventually import eventually
from support.transactions import FIBONACCI, fibonacci_transaction, seen, task_process

pytestmark = pytest.mark.kafka

VERIFIABLE = "sluiceway.connectors.verifiable.source.VerifiableSourceConnector"
PARTITION = {"file": "p"}
KILLS = 20

Worker = dict[str, str]
Names = Callable[[str], str]
Store = KafkaOffsetBackingStore | ConnectorOffsetBackingStore


@pytest.fixture
def worker(kafka_bootstrap: str, unique: Names) -> Worker:
    properties = {
        "bootstrap.servers": kafka_bootstrap,
        "group.id": unique("group"),
        "exactly.once.source.support": "enabled",
        "key.converter": "StringConverter",
        "value.converter": "StringConverter",
        "offset.storage.partitions": "3",
        "offset.flush.interval.ms": "600000",
    }
    for kind in ("config", "offset", "status"):
        properties |= {f"{kind}.storage.topic": unique(kind), f"{kind}.storage.replication.factor": "1"}
    return properties


@pytest.fixture
def stores(worker: Worker) -> Iterator[Callable[[dict[str, str]], Any]]:
    """Open the offset store that a task of a config gets."""
    with ExitStack() as stack:

        def opened(config: dict[str, str]) -> Store:
            store = open_source_offsets(WorkerConfig.of(worker), config)
            store.start()
            stack.callback(store.stop)
            return store

        yield opened


def config_of(name: str, connector: str = SOURCE, **more: str) -> dict[str, str]:
    given = {key.replace("_", "."): value for key, value in more.items()}
    return {"name": name, "connector.class": connector, "topic": name, **given}


def records(topic: str, *numbers: int, **more: Any) -> list[SourceRecord]:
    return [SourceRecord(PARTITION, {"position": number}, topic, str(number), STRING_SCHEMA, **more) for number in numbers]


def values(worker: Worker, topic: str, *, committed: bool = True) -> list[int]:
    return [int(message.value()) for message in seen(worker["bootstrap.servers"], topic, committed=committed)]


def judged(worker: Worker, topic: str) -> Verdict:
    found = seen(worker["bootstrap.servers"], topic)
    return check(from_topic(TopicRecord(topic, 0, message.key(), message.value()) for message in found))


def stored(store: Store, name: str) -> Offset | None:
    return store.get(name, [PARTITION])[0]


# Boundaries.


def test_each_poll_is_a_transaction_of_its_own(worker: Worker, stores: Any, unique: Names) -> None:
    name = unique("poll")
    made = script(name, records(name, 1), records(name, 2, 3), None)
    with RunningTask(config_of(name), worker, offsets=stores({})) as task:
        eventually(lambda: made.names().count("commit") == 2)
        found = seen(worker["bootstrap.servers"], name)
        assert [(message.offset(), message.value()) for message in found] == [(0, b"1"), (2, b"2"), (3, b"3")]
        assert stored(stores({}), name) == {"position": 3}
        assert task.reports.states == [State.RUNNING]


def test_an_interval_takes_polls_together_until_it_is_over(worker: Worker, stores: Any, unique: Names) -> None:
    name = unique("interval")
    made = script(name, records(name, 1), records(name, 2), None, records(name, 3))
    config = config_of(
        name, transaction_boundary="interval", transaction_boundary_interval_ms="500000", producer_override_linger_ms="0"
    )
    with RunningTask(config, worker, offsets=stores({})) as task:
        eventually(lambda: made.steps == [] and task.reports.topics == [name])
        eventually(lambda: len(values(worker, name, committed=False)) == 3)
        assert values(worker, name) == []
        assert made.names().count("commit") == 0
        task.stop()
    assert values(worker, name) == [1, 2, 3]
    assert stored(stores({}), name) == {"position": 3}


def test_an_interval_that_is_over_commits_while_nothing_is_polled(worker: Worker, stores: Any, unique: Names) -> None:
    name = unique("interval")
    script(name, records(name, 1))
    config = config_of(name, transaction_boundary="interval", transaction_boundary_interval_ms="50")
    with RunningTask(config, worker, offsets=stores({})):
        eventually(lambda: stored(stores({}), name) == {"position": 1})
        assert values(worker, name) == [1]


@pytest.mark.parametrize("by_batch", ["false", "true"])
def test_a_connector_says_itself_what_its_transactions_are(worker: Worker, stores: Any, unique: Names, by_batch: str) -> None:
    name, end = unique("fibonacci"), 200
    config = config_of(
        name,
        FIBONACCI,
        transaction_boundary="connector",
        records_max=str(end),
        by_batch=by_batch,
        value_converter="LongConverter",
    )
    with RunningTask(config, worker, offsets=stores({}), bounded=True) as task:
        result = task.join()
    assert not result.failed, result.trace
    complete = end if by_batch == "true" else max(number + 1 for number in range(end) if fibonacci_transaction(number)[1] <= end)
    assert complete > 140, "there are fewer transactions than meant"
    wanted = [number for number in range(complete) if fibonacci_transaction(number)[0]]
    assert [int.from_bytes(message.value()) for message in seen(worker["bootstrap.servers"], name)] == wanted
    assert stores({}).get(name, [{"id": 0}]) == [{"seqno": complete - 1}], "aborted records are not read again"


def test_records_that_a_transform_drops_move_the_offset_in_a_transaction_without_records(
    worker: Worker, stores: Any, unique: Names
) -> None:
    name = unique("dropped")
    nothing_left = {"transforms": "f", "transforms.f.type": "Filter"}
    script(name, records(name, 1, 2))
    with RunningTask({**config_of(name), **nothing_left}, worker, offsets=stores({}), bounded=True) as task:
        assert not task.join().failed
    assert stored(stores({}), name) == {"position": 2}
    assert task.reports.topics == []


def test_a_task_hears_of_its_records_once_they_are_committed(worker: Worker, stores: Any, unique: Names) -> None:
    name = unique("heard")
    made = script(name, records(name, 1, 2))
    with RunningTask(config_of(name, ACKNOWLEDGED_SOURCE), worker, offsets=stores({}), bounded=True) as task:
        assert not task.join().failed
    assert made.calls == [("start",), ("commit_record", "1", 0, 0), ("commit_record", "2", 0, 1), ("commit",), ("stop",)]


def test_a_batch_that_fails_is_rolled_back_in_full_and_those_before_it_stand(worker: Worker, stores: Any, unique: Names) -> None:
    name = unique("failing")
    bad = SourceRecord(PARTITION, {"position": 4}, name, object(), STRING_SCHEMA)
    made = script(name, records(name, 1, 2), [*records(name, 3), bad])
    json = {"value.converter": "JsonConverter"}
    with RunningTask({**config_of(name), **json}, worker, offsets=stores({})) as task:
        result = task.join()
    assert result.failed
    assert task.reports.states == [State.RUNNING, State.FAILED]
    assert len(seen(worker["bootstrap.servers"], name)) == 2
    assert stored(stores({}), name) == {"position": 2}
    assert made.names().count("commit") == 1


# What happens to tasks.


class KilledBeforeOffsets:
    """A store for a task that is killed when it has sent its records and is about to send their offsets."""

    def __init__(self, store: Store, ready: Callable[[], bool]) -> None:
        self._store = store
        self._ready = ready

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def for_transaction(self, connector: str, offsets: Sequence[tuple[Partition, Offset | None]]) -> list[Any]:
        eventually(self._ready)
        raise Abandoned

    def committed(self, connector: str, offsets: Sequence[tuple[Partition, Offset | None]]) -> None:
        raise AssertionError("nothing was committed")


def test_a_task_killed_between_records_and_offsets_leaves_nothing_and_the_next_repeats_nothing(
    worker: Worker, stores: Any, unique: Names
) -> None:
    name = unique("killed")
    script(name, records(name, 1, 2))
    arrived = KilledBeforeOffsets(stores({}), lambda: values(worker, name, committed=False) == [1, 2])
    with RunningTask(config_of(name), worker, offsets=arrived) as task:  # type: ignore[arg-type]
        assert not task.join().failed
    assert values(worker, name) == []
    script(name, records(name, 1, 2), None, records(name, 3))
    store = stores({})
    with RunningTask(config_of(name), worker, offsets=store, bounded=True) as task:
        assert not task.join().failed
    assert values(worker, name, committed=False) == [1, 2, 1, 2, 3]
    assert values(worker, name) == [1, 2, 3]
    assert stored(store, name) == {"position": 3}


@pytest.mark.parametrize("boundary", ["poll", "interval"])
def test_of_two_tasks_with_one_id_the_older_ends_and_writes_nothing_more(
    worker: Worker, stores: Any, unique: Names, boundary: str
) -> None:
    name = unique("twins")
    made = script(name, records(name, 1), None)
    config = config_of(name, transaction_boundary=boundary, transaction_boundary_interval_ms="500000")
    with RunningTask(config, worker, offsets=stores({})) as older:
        eventually(lambda: older.reports.topics == [name])
        eventually(lambda: values(worker, name, committed=False) == [1])
        newer_name_of_script = Script(steps=[])
        Script.by_name[name] = newer_name_of_script  # what the newer task polls
        with RunningTask(config, worker, offsets=stores({})) as newer:
            newer.wait_for(State.RUNNING)
            made.steps.append(records(name, 99))
            result = older.join() if boundary == "poll" else older.stop()
            assert (result.lost, result.failed) == (True, False), result.trace
            assert "FencedError" in str(result.trace)
            newer_name_of_script.steps.append(records(name, 100))
            eventually(lambda: newer_name_of_script.steps == [])
    assert older.reports.states == [State.RUNNING], "a task that was fenced says nothing of its state"
    assert values(worker, name) == ([1, 100] if boundary == "poll" else [100])
    assert stored(stores({}), name) == {"position": 100}


def verifiable(name: str, **more: str) -> dict[str, str]:
    numbers = {
        "value.converter": "JsonConverter",
        "value.converter.schemas.enable": "false",
        "key.converter": "JsonConverter",
        "key.converter.schemas.enable": "false",
    }
    return {**config_of(name, VERIFIABLE, **more), **numbers}


@pytest.mark.parametrize("boundary", ["poll", "interval"])
def test_random_kills_lose_and_repeat_nothing(
    worker: Worker, stores: Any, unique: Names, boundary: str, chance: random.Random
) -> None:
    """Each process is killed at a random moment of its work; the next one takes over at once."""
    name = unique("kills")
    config = verifiable(
        name,
        batch_size="7",
        throughput="3000",
        transaction_boundary=boundary,
        transaction_boundary_interval_ms="40",
        topic_creation_default_partitions="1",
        topic_creation_default_replication_factor="1",
    )
    for _ in range(KILLS if boundary == "poll" else KILLS // 2):
        with task_process(config, worker) as process:
            moves_on(worker, name)
            time.sleep(chance.uniform(0, 0.3))
            process.kill()
    reached = committed_end(worker, name)
    with RunningTask({**config, "records.max": str(reached + 5000)}, worker, bounded=True, offsets=stores({})) as task:
        assert not task.join().failed
    verdict = judged(worker, name)
    print(verdict)
    assert verdict.exactly_once, verdict
    assert verdict.total == reached + 5000
    assert len(seen(worker["bootstrap.servers"], name, committed=False)) > verdict.total, "no kill hit an open transaction"


def committed_end(worker: Worker, topic: str) -> int:
    """Return the offset up to which readers of committed records see a topic, -1 if there is none yet."""
    admin = admin_client(WorkerConfig.of(worker))
    if not partition_count(admin, topic):
        return -1
    place = TopicPartition(topic, 0)
    return end_offsets(admin, [place], read_committed=True)[place]


def moves_on(worker: Worker, topic: str, by: int = 1) -> int:
    """Wait until so much more is committed; return up to where."""
    before = committed_end(worker, topic)
    eventually(lambda: committed_end(worker, topic) >= before + by, what=f"{by} more in {topic}")
    return committed_end(worker, topic)


def test_a_frozen_task_writes_nothing_after_it_was_replaced(worker: Worker, unique: Names) -> None:
    name = unique("zombie")
    config = verifiable(
        name, throughput="1000", topic_creation_default_partitions="1", topic_creation_default_replication_factor="1"
    )
    with task_process(config, worker) as zombie:
        moves_on(worker, name)
        zombie.freeze()
        with task_process(config, worker):
            moves_on(worker, name, 1000)
            zombie.thaw()
            assert zombie.join(30), "the replaced task goes on"
            moves_on(worker, name, 1000)
    verdict = judged(worker, name)
    assert verdict.exactly_once, verdict


# Offsets topics.


def test_a_connectors_own_offsets_topic_is_the_truth_and_backed_up(worker: Worker, stores: Any, unique: Names) -> None:
    name, own = unique("separate"), {"offsets.storage.topic": unique("own-offsets")}
    script(name, records(name, 1))
    with RunningTask({**config_of(name), **own}, worker, offsets=stores(own), bounded=True) as task:
        assert not task.join().failed
    inside = KafkaOffsetBackingStore(WorkerConfig.of(worker), own["offsets.storage.topic"])
    inside.start()
    assert stored(inside, name) == {"position": 1}
    inside.stop()
    assert stored(stores({}), name) == {"position": 1}, "not backed up"
    # Soft downgrade: without the key the connector goes on where it was, and back again.
    script(name, records(name, 2))
    with RunningTask(config_of(name), worker, offsets=stores({}), bounded=True) as task:
        assert not task.join().failed
    assert stored(stores({}), name) == {"position": 2}
    assert stored(stores(own), name) == {"position": 1}, "its own topic wins, as in Connect"


def test_a_tombstone_in_a_connectors_own_topic_does_not_bring_the_backup_to_life(
    worker: Worker, stores: Any, unique: Names
) -> None:
    name, own = unique("tombstone"), {"offsets.storage.topic": unique("own-offsets")}
    gone = [SourceRecord(PARTITION, None, name, "2", STRING_SCHEMA)]
    script(name, records(name, 1), gone)
    with RunningTask({**config_of(name), **own}, worker, offsets=stores(own), bounded=True) as task:
        assert not task.join().failed
    assert values(worker, name) == [1, 2]
    assert stored(stores(own), name) is None
    assert stores(own).all(name) == []


def test_offsets_of_both_topics_are_listed_once(worker: Worker, stores: Any, unique: Names) -> None:
    name, own = unique("both"), {"offsets.storage.topic": unique("own-offsets")}
    stores({}).put(name, [({"f": 1}, {"p": 1}), ({"f": 2}, {"p": 1})])
    store = stores(own)
    store.put(name, [({"f": 2}, {"p": 2}), ({"f": 3}, {"p": 3})])
    assert sorted((p["f"], o["p"]) for p, o in store.all(name)) == [(1, 1), (2, 2), (3, 3)]
    assert store.get(name, [{"f": 3}, {"f": 1}, {"f": 2}, {"f": 9}]) == [{"p": 3}, {"p": 1}, {"p": 2}, None]


# Generations.


@pytest.fixture
def config_store(worker: Worker) -> Iterator[KafkaConfigBackingStore]:
    store = KafkaConfigBackingStore(WorkerConfig.of(worker))
    store.start()
    yield store
    store.stop()


def test_all_tasks_of_the_earlier_generation_are_fenced_before_a_new_one_may_start(
    worker: Worker, config_store: KafkaConfigBackingStore, unique: Names
) -> None:
    name, settings = unique("generations"), WorkerConfig.of(worker)
    config_store.put_connector(name, verifiable(name))
    config_store.put_task_configs(name, [{"task": str(number)} for number in range(3)])
    fence_earlier_tasks(settings, config_store, name)
    entry = config_store.snapshot().entry(name)
    assert entry is not None
    assert (entry.task_count, entry.pending_fencing) == (3, False)
    create_topic(admin_client(settings), settings.offset_topic, 1, 1)
    older = [FencedWriter(settings, f"{settings.group_id}-{name}-{number}", "older") for number in range(3)]
    for writer in older:
        writer.fence()
        writer.write([(settings.offset_topic, b"k", b"v")])
    fence_earlier_tasks(settings, config_store, name)
    for writer in older:
        writer.write([(settings.offset_topic, b"k", b"v")])  # nothing was committed since: they are of this generation
    config_store.put_task_configs(name, [{"task": "only"}])
    fence_earlier_tasks(settings, config_store, name)
    for writer in older:
        with pytest.raises(FencedError):
            writer.write([(settings.offset_topic, b"k", b"v")])
    reread = KafkaConfigBackingStore(settings)
    reread.start()
    entry = reread.snapshot().entry(name)
    reread.stop()
    assert entry is not None
    assert (entry.task_count, entry.pending_fencing) == (1, False)


def test_task_counts_outlive_their_connector(worker: Worker, config_store: KafkaConfigBackingStore, unique: Names) -> None:
    name, settings = unique("again"), WorkerConfig.of(worker)
    config_store.put_connector(name, verifiable(name))
    config_store.put_task_configs(name, [{"a": "1"}, {"a": "2"}])
    fence_earlier_tasks(settings, config_store, name)
    config_store.remove_connector(name)
    config_store.put_connector(name, verifiable(name))
    config_store.put_task_configs(name, [{"a": "1"}])
    entry = config_store.snapshot().entry(name)
    assert entry is not None
    assert (entry.task_count, entry.pending_fencing) == (2, True)


# Topics.


def test_topics_are_made_by_the_group_that_takes_them(worker: Worker, stores: Any, unique: Names) -> None:
    name, compacted = unique("made"), unique("compact")
    made = config_of(
        name,
        topic_creation_default_partitions="2",
        topic_creation_default_replication_factor="-1",
        topic_creation_groups="c",
        topic_creation_c_include="compact-.*",
        topic_creation_c_partitions="3",
        topic_creation_c_cleanup_policy="compact",
    )
    made["topic.creation.c.cleanup.policy"] = made.pop("topic.creation.c.cleanup.policy")
    script(name, [*records(name, 1), *records(compacted, 2, key="k")])
    with RunningTask(made, worker, offsets=stores({}), bounded=True) as task:
        result = task.join()
    assert not result.failed, result.trace
    admin = AdminClient({"bootstrap.servers": worker["bootstrap.servers"]})
    assert [len(admin.list_topics(topic, timeout=10).topics[topic].partitions) for topic in (name, compacted)] == [2, 3]
    policies = []
    for topic in (name, compacted):
        resource = ConfigResource(ResourceType.TOPIC, topic)
        policies.append(admin.describe_configs([resource])[resource].result()["cleanup.policy"].value)
    assert policies == ["delete", "compact"]


def test_a_topic_that_cannot_be_made_fails_the_task_and_says_what_to_do(worker: Worker, stores: Any, unique: Names) -> None:
    name = unique("unmade")
    config = config_of(name, topic_creation_default_partitions="1", topic_creation_default_replication_factor="9")
    script(name, records(name, 1))
    with RunningTask(config, worker, offsets=stores({}), bounded=True) as task:
        result = task.join()
    assert result.failed
    assert f"could not create topic '{name}' with the settings of group 'default'" in str(result.trace)
    assert stored(stores({}), name) is None


def test_an_abandoned_task_commits_nothing(worker: Worker, stores: Any, unique: Names) -> None:
    name = unique("abandoned")
    script(name, records(name, 1))
    config = config_of(name, transaction_boundary="interval", transaction_boundary_interval_ms="500000")
    with RunningTask(config, worker, offsets=stores({})) as task:
        eventually(lambda: values(worker, name, committed=False) == [1] if task.reports.topics else False)
        result = task.stop(TaskCommand.ABANDON)
    assert not result.failed
    assert values(worker, name) == []
