"""Exactly-once sources whose tasks are killed, frozen, replaced or canceled."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from sluiceway.api import Offset, Partition, TopicPartition
from sluiceway.config.worker import WorkerConfig
from sluiceway.kafka.admin import end_offsets, partition_count
from sluiceway.kafka.clients import admin_client
from sluiceway.runtime.interrupts import Abandoned
from sluiceway.runtime.task import TaskCommand
from sluiceway.storage.model import State
from support.engine import RunningTask
from support.engine_connectors import Script, script
from support.eventually import LIMIT, eventually
from support.exactly_once import (
    Names,
    Store,
    Worker,
    config_of,
    exactly_once_worker,
    judged,
    opened_stores,
    records,
    stored,
    values,
    verifiable,
)
from support.transactions import seen, task_process

pytestmark = pytest.mark.kafka


@pytest.fixture
def worker(kafka_bootstrap: str, unique: Names) -> Worker:
    return exactly_once_worker(kafka_bootstrap, unique)


@pytest.fixture
def stores(worker: Worker) -> Iterator[Callable[[dict[str, str]], Any]]:
    with opened_stores(worker) as opened:
        yield opened


class KilledBeforeOffsets:
    """An offset store that stops the task after its records are sent and before their offsets are."""

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


def test_a_task_killed_between_records_and_offsets_commits_nothing_and_the_next_repeats_nothing(
    worker: Worker, stores: Any, unique: Names
) -> None:
    name = unique("killed")
    script(name, records(name, 1, 2))
    arrived = KilledBeforeOffsets(stores({}), lambda: values(worker, name, committed=False) == [1, 2])
    with RunningTask(config_of(name), worker, store=arrived) as task:
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
def test_an_older_task_with_the_same_id_is_fenced_and_writes_nothing_more(
    worker: Worker, stores: Any, unique: Names, boundary: str
) -> None:
    name = unique("twins")
    made = script(name, records(name, 1), None)
    config = config_of(name, transaction_boundary=boundary, transaction_boundary_interval_ms="500000")
    with RunningTask(config, worker, offsets=stores({})) as older:
        eventually(lambda: older.reports.topics == [name])
        eventually(lambda: values(worker, name, committed=False) == [1])
        newer_name_of_script = Script(steps=[])
        Script.by_name[name] = newer_name_of_script  # polled by the newer task
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


@pytest.mark.parametrize("kills", [6, pytest.param(20, marks=pytest.mark.long)])
@pytest.mark.parametrize("boundary", ["poll", "interval"])
def test_random_kills_lose_and_repeat_nothing(
    worker: Worker, stores: Any, unique: Names, boundary: str, kills: int, chance: random.Random
) -> None:
    """Each process is killed at a random moment; the next one takes over at once."""
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
    for _ in range(kills):
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
    if kills > 6:
        assert len(seen(worker["bootstrap.servers"], name, committed=False)) > verdict.total, "no kill hit an open transaction"


def committed_end(worker: Worker, topic: str) -> int:
    """Return a topic's end offset for readers of committed records, -1 if the topic does not exist."""
    admin = admin_client(WorkerConfig.of(worker))
    if not partition_count(admin, topic):
        return -1
    partition = TopicPartition(topic, 0)
    return end_offsets(admin, [partition], read_committed=True)[partition]


def moves_on(worker: Worker, topic: str, by: int = 1) -> int:
    """Wait until ``by`` more offsets are committed; return the new end."""
    before = committed_end(worker, topic)
    eventually(lambda: committed_end(worker, topic) >= before + by, what=f"{by} more in {topic}")
    return committed_end(worker, topic)


def test_a_frozen_task_writes_nothing_after_its_replacement_starts(worker: Worker, unique: Names) -> None:
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
            assert zombie.join(LIMIT), "the replaced task continues"
            moves_on(worker, name, 1000)
    verdict = judged(worker, name)
    assert verdict.exactly_once, verdict


def test_an_abandoned_task_commits_nothing(worker: Worker, stores: Any, unique: Names) -> None:
    name = unique("abandoned")
    script(name, records(name, 1))
    config = config_of(name, transaction_boundary="interval", transaction_boundary_interval_ms="500000")
    with RunningTask(config, worker, offsets=stores({})) as task:
        eventually(lambda: values(worker, name, committed=False) == [1] if task.reports.topics else False)
        result = task.stop(TaskCommand.ABANDON)
    assert not result.failed
    assert values(worker, name) == []
