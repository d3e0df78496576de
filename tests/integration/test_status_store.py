"""The status store on a real broker: several writers, tombstones and a driver's lease."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError, FencedError
from sluiceway.kafka.fenced_writer import FencedWriter
from sluiceway.storage import codec
from sluiceway.storage.model import State, Status, TaskId
from sluiceway.storage.status_backing_store import KafkaStatusBackingStore
from support.eventually import eventually

pytestmark = pytest.mark.kafka
RUNNING = Status(State.RUNNING, "w:1", 1, version="4.3.0")
Open = Callable[[Any], Any]


def test_a_writer_reads_its_own_statuses_at_once_and_others_do_soon(worker: WorkerConfig, opened: Open) -> None:
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


def test_a_write_only_store_cannot_be_read(worker: WorkerConfig, opened: Open) -> None:
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
