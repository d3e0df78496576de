"""Offsets topics and zombie fencing of exactly-once sources."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from sluiceway.api import SourceRecord
from sluiceway.config.worker import WorkerConfig
from sluiceway.data import STRING_SCHEMA
from sluiceway.errors import FencedError
from sluiceway.kafka.admin import create_topic
from sluiceway.kafka.clients import admin_client
from sluiceway.kafka.fenced_writer import FencedWriter
from sluiceway.storage.config_backing_store import KafkaConfigBackingStore
from sluiceway.storage.offset_backing_store import KafkaOffsetBackingStore
from sluiceway.worker.zombie_fencing import fence_earlier_tasks
from support.engine import RunningTask
from support.engine_connectors import script
from support.exactly_once import (
    PARTITION,
    Names,
    Worker,
    config_of,
    exactly_once_worker,
    opened_stores,
    records,
    stored,
    values,
    verifiable,
)

pytestmark = pytest.mark.kafka


@pytest.fixture
def worker(kafka_bootstrap: str, unique: Names) -> Worker:
    return exactly_once_worker(kafka_bootstrap, unique)


@pytest.fixture
def stores(worker: Worker) -> Iterator[Callable[[dict[str, str]], Any]]:
    with opened_stores(worker) as opened:
        yield opened


def test_a_connectors_own_offsets_topic_takes_precedence_and_is_backed_up(worker: Worker, stores: Any, unique: Names) -> None:
    name, own = unique("separate"), {"offsets.storage.topic": unique("own-offsets")}
    script(name, records(name, 1))
    with RunningTask({**config_of(name), **own}, worker, offsets=stores(own), bounded=True) as task:
        assert not task.join().failed
    inside = KafkaOffsetBackingStore(WorkerConfig.of(worker), own["offsets.storage.topic"])
    inside.start()
    assert stored(inside, name) == {"position": 1}
    inside.stop()
    assert stored(stores({}), name) == {"position": 1}, "not backed up"
    # Soft downgrade: without the key the connector continues at its offset, also after the key is set again.
    script(name, records(name, 2))
    with RunningTask(config_of(name), worker, offsets=stores({}), bounded=True) as task:
        assert not task.join().failed
    assert stored(stores({}), name) == {"position": 2}
    assert stored(stores(own), name) == {"position": 1}, "its own topic wins, as in Connect"


def test_a_tombstone_in_a_connectors_own_topic_hides_the_backup(worker: Worker, stores: Any, unique: Names) -> None:
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


@pytest.fixture
def config_store(worker: Worker) -> Iterator[KafkaConfigBackingStore]:
    store = KafkaConfigBackingStore(WorkerConfig.of(worker))
    store.start()
    yield store
    store.stop()


def test_all_tasks_of_the_earlier_generation_are_fenced_before_a_new_one_starts(
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
        writer.write([(settings.offset_topic, b"k", b"v")])  # no task configs were written since: they are of this generation
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
