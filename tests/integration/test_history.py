"""The history of connectors on a real broker: its topic, its headers, and several writers."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from sluiceway.config.worker import WorkerConfig
from sluiceway.kafka.admin import create_topic, partition_count, topic_settings
from sluiceway.kafka.clients import admin_client
from sluiceway.storage.config_backing_store import KafkaConfigBackingStore
from sluiceway.storage.history import KEPT, Origin
from sluiceway.storage.model import TargetState

pytestmark = pytest.mark.kafka
Open = Callable[[Any], Any]

ALICE, BOB = Origin("alice", True, "10.0.0.7", "curl/8"), Origin("bob", client="sluiceway/1")


def headers_on(worker: WorkerConfig, topic: str) -> list[dict[str, bytes]]:
    """Return the headers of each record, oldest first."""
    reader = Consumer(
        {
            "bootstrap.servers": worker.bootstrap_servers,
            "group.id": "none",
            "enable.partition.eof": "true",
            "enable.auto.commit": "false",
        }
    )
    found: list[dict[str, bytes]] = []
    try:
        reader.assign([TopicPartition(topic, 0, 0)])
        while (message := reader.poll(30)) is not None and message.error() is None:
            found.append(dict(message.headers() or ()))  # type: ignore[arg-type]
    finally:
        reader.close()
    return found


def test_changes_by_several_writers_are_numbered_in_turn(worker: WorkerConfig, opened: Open) -> None:
    began = int(time.time() * 1000)
    first, second = opened(KafkaConfigBackingStore(worker)), opened(KafkaConfigBackingStore(worker))
    first.put_connector("a", {"n": "0"}, origin=ALICE)
    second.put_connector("a", {"n": "1", "pw": "hunter2"}, origin=BOB, secrets={"pw"})
    second.put_target_state("a", TargetState.STOPPED, BOB)
    first.record_offsets("a", [({"p": 0}, None, {"o": 1})], ALICE)
    first.put_connector("b", {"n": "0"}, origin=ALICE)
    second.remove_connector("a", BOB)
    expected = [(1, "created", ALICE), (2, "config", BOB), (3, "state", BOB), (4, "offsets", ALICE), (5, "deleted", BOB)]
    for store in (first, second, opened(KafkaConfigBackingStore(worker))):
        changes = store.history("a")
        assert [(each.version, each.what, each.origin) for each in changes] == expected
        assert changes[1].edits == {"n": ("0", "1"), "pw": (None, "[hidden]")}
        assert began <= changes[-1].timestamp <= time.time() * 1000
        assert [each.version for each in store.history("b")] == [1]
    headers = headers_on(worker, worker.config_topic)
    assert headers[0] == {
        "sluiceway.version": b"1",
        "sluiceway.user": b"alice",
        "sluiceway.address": b"10.0.0.7",
        "sluiceway.client": b"curl/8",
    }
    assert headers[-1] == {"sluiceway.version": b"5", "sluiceway.user": b"bob", "sluiceway.client": b"sluiceway/1"}
    assert len(headers) == 7  # the offsets are not on this topic


def test_the_topic_is_made_by_the_first_recorded_change_and_stays_small(worker: WorkerConfig, opened: Open) -> None:
    admin, topic = admin_client(worker), f"{worker.config_topic}-history"
    store = opened(KafkaConfigBackingStore(worker))
    store.put_connector("a", {"n": "0"})
    assert store.history("a") == []
    assert partition_count(admin, topic) is None
    for number in range(1, KEPT + 3):
        store.put_connector("a", {"n": str(number)}, origin=ALICE)
    assert partition_count(admin, topic) == 1
    assert set(topic_settings(admin, topic)["cleanup.policy"].split(",")) == {"compact", "delete"}
    for versions in (store.history("a"), opened(KafkaConfigBackingStore(worker)).history("a")):
        assert [each.version for each in versions] == list(range(4, KEPT + 4))  # version 1 is the config before


def test_the_history_can_be_turned_off(worker: WorkerConfig, opened: Open) -> None:
    without = WorkerConfig.of({**worker.raw, "sluiceway.history.topic": ""})
    store = opened(KafkaConfigBackingStore(without))
    store.put_connector("a", {"n": "0"}, origin=ALICE)
    assert (store.history("a"), store.snapshot().names()) == ([], ["a"])
    assert partition_count(admin_client(worker), f"{worker.config_topic}-history") is None
    assert headers_on(worker, worker.config_topic) == [{}]


def test_a_cluster_that_refuses_the_topic_does_not_refuse_the_change(
    worker: WorkerConfig, opened: Open, caplog: pytest.LogCaptureFixture
) -> None:
    create_topic(admin_client(worker), worker.config_topic, 1, 1, {"cleanup.policy": "compact"})
    store = opened(KafkaConfigBackingStore(WorkerConfig.of({**worker.raw, "config.storage.replication.factor": "3"})))
    with caplog.at_level(logging.WARNING):
        store.put_connector("a", {"n": "0"}, origin=ALICE)
        store.put_connector("a", {"n": "1"}, origin=replace(ALICE, note="again"))
    assert store.snapshot().connectors["a"].config == {"n": "1", "name": "a"}
    assert len([each for each in caplog.messages if "are not recorded" in each]) == 1
    assert store.history("a") == []
