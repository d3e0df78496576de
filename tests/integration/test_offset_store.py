"""The offset store on a real broker: restarts and transactions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.kafka.clients import producer, producer_config
from sluiceway.storage import codec
from sluiceway.storage.offset_backing_store import KafkaOffsetBackingStore
from support.eventually import eventually

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


def test_offsets_of_a_transaction_are_visible_once_it_is_committed(worker: WorkerConfig, opened: Open) -> None:
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
