"""The offset store on a real broker: restarts and transactions."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import pytest
from confluent_kafka import Producer

from sluiceway.config.worker import WorkerConfig
from sluiceway.kafka.clients import producer, transactional_producer_config
from sluiceway.storage import codec
from sluiceway.storage.offset_backing_store import KafkaOffsetBackingStore
from support.eventually import LIMIT

pytestmark = pytest.mark.kafka
Open = Callable[[Any], Any]


def test_offsets_survive_a_restart_and_deleted_ones_do_not(worker: WorkerConfig, opened: Open) -> None:
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


def transactional(worker: WorkerConfig, name: str) -> Producer:
    """Return a task's producer with an open transaction."""
    identity = f"{worker.group_id}-{name}"
    task = producer(transactional_producer_config(worker, name, identity, {"delivery.timeout.ms": "10000"}))
    task.init_transactions(30)
    task.begin_transaction()
    return task


def send(task: Producer, worker: WorkerConfig, connector: str, partition: dict[str, str], position: int) -> None:
    key, value = codec.encode_offset(connector, partition, {"position": position})
    task.produce(worker.offset_topic, key=key, value=value, partition=0)
    task.flush(10)


def test_offsets_of_a_transaction_are_visible_once_it_is_committed(worker: WorkerConfig, opened: Open) -> None:
    store = opened(KafkaOffsetBackingStore(worker))
    partition = {"file": "x"}
    task = transactional(worker, "task")
    send(task, worker, "a", partition, 1)
    with ThreadPoolExecutor(1) as threads:
        found = threads.submit(store.get, "a", [partition])
        assert not wait([found], 1).done, "the open transaction may be committed"
        task.commit_transaction(10)
        assert found.result(LIMIT) == [{"position": 1}]
        task.begin_transaction()
        send(task, worker, "a", partition, 2)
        found = threads.submit(store.get, "a", [partition])
        task.abort_transaction(10)
        assert found.result(LIMIT) == [{"position": 1}]


def test_another_connectors_open_transaction_hides_no_committed_offset(worker: WorkerConfig, opened: Open) -> None:
    store = opened(KafkaOffsetBackingStore(worker))
    partition = {"file": "x"}
    other, task = transactional(worker, "other"), transactional(worker, "task")
    send(other, worker, "b", partition, 1)
    send(task, worker, "a", partition, 1)
    task.commit_transaction(10)
    with ThreadPoolExecutor(1) as threads:
        found = threads.submit(store.get, "a", [partition])
        assert not wait([found], 1).done
        other.abort_transaction(10)
        assert found.result(LIMIT) == [{"position": 1}]


def test_a_store_starts_beside_the_open_transaction_of_a_dead_task_which_its_successor_ends(
    worker: WorkerConfig, opened: Open
) -> None:
    partition = {"file": "x"}
    opened(KafkaOffsetBackingStore(worker)).put("a", [(partition, {"position": 1})])
    dead = transactional(worker, "task")
    send(dead, worker, "a", partition, 2)
    with ThreadPoolExecutor(1) as threads:
        started = threads.submit(opened, KafkaOffsetBackingStore(worker))
        store = started.result(LIMIT)  # long before the transaction times out
    transactional(worker, "task")
    assert store.get("a", [partition]) == [{"position": 1}]
