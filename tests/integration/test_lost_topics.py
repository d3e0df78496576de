"""Internal topics that are deleted or recreated while stores use them, and broker restarts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import InternalTopicError
from sluiceway.kafka.admin import create_topic, partition_count
from sluiceway.kafka.clients import admin_client
from sluiceway.stack.broker import EmbeddedBroker
from sluiceway.storage.config_backing_store import KafkaConfigBackingStore
from sluiceway.storage.offset_backing_store import KafkaOffsetBackingStore
from support.eventually import eventually
from support.kafka import worker_for

pytestmark = pytest.mark.kafka
Open = Callable[[Any], Any]


def delete(worker: WorkerConfig, topic: str) -> None:
    admin = admin_client(worker)
    for future in admin.delete_topics([topic]).values():
        future.result()
    eventually(lambda: partition_count(admin, topic) is None)


def create(worker: WorkerConfig, partitions: int, settings: Mapping[str, str] | None = None) -> None:
    """Create the offsets topic, and wait until the broker shows it: it answers a little earlier."""
    admin = admin_client(worker)
    create_topic(admin, worker.offset_topic, partitions, 1, settings)
    eventually(lambda: partition_count(admin, worker.offset_topic) == partitions)


def test_a_deleted_topic_is_an_error_and_does_not_count_as_empty(worker: WorkerConfig, opened: Open) -> None:
    offsets, configs = opened(KafkaOffsetBackingStore(worker)), opened(KafkaConfigBackingStore(worker))
    offsets.put("a", [({"p": 1}, {"o": 1})])
    configs.put_connector("a", {})
    delete(worker, worker.offset_topic)
    delete(worker, worker.config_topic)
    with pytest.raises(InternalTopicError, match=worker.offset_topic):
        offsets.get("a", [{"p": 1}])
    with pytest.raises(InternalTopicError, match=worker.config_topic):
        configs.refresh()


def test_writing_to_a_deleted_offsets_topic_is_an_error_and_does_not_create_it(worker: WorkerConfig, opened: Open) -> None:
    offsets = opened(KafkaOffsetBackingStore(worker))
    offsets.put("a", [({"p": 1}, {"o": 1})])
    delete(worker, worker.offset_topic)
    with pytest.raises(InternalTopicError, match=worker.offset_topic):
        offsets.put("a", [({"p": 1}, {"o": 2})])
    with pytest.raises(InternalTopicError, match=worker.offset_topic):
        offsets.for_transaction("a", [({"p": 1}, {"o": 2})])
    assert partition_count(admin_client(worker), worker.offset_topic) is None


def test_writing_to_a_recreated_offsets_topic_is_an_error(worker: WorkerConfig, opened: Open) -> None:
    offsets = opened(KafkaOffsetBackingStore(worker))
    offsets.put("a", [({"p": 1}, {"o": 1})])
    delete(worker, worker.offset_topic)
    create(worker, 1)

    def refused() -> bool:
        try:
            offsets.put("a", [({"p": 1}, {"o": 2})])
        except InternalTopicError:
            return True
        return False

    eventually(refused)


def test_a_lost_offsets_topic_is_not_created_again_after_sources_have_run(worker: WorkerConfig, opened: Open) -> None:
    configs, offsets = opened(KafkaConfigBackingStore(worker)), opened(KafkaOffsetBackingStore(worker))
    configs.put_connector("a", {"connector.class": "FileStreamSource", "file": "f", "topic": "t"})
    delete(worker, worker.offset_topic)
    KafkaOffsetBackingStore(worker).start()  # it has not had tasks: no offset can be lost
    offsets.stop()
    configs.put_task_configs("a", [{"task": "0"}])
    delete(worker, worker.offset_topic)
    with pytest.raises(InternalTopicError, match=rf"(?s){worker.offset_topic}.*have run \(a\).*kafka-topics.sh --create"):
        KafkaOffsetBackingStore(worker).start()
    assert partition_count(admin_client(worker), worker.offset_topic) is None
    create(worker, 5, {"cleanup.policy": "compact"})
    opened(KafkaOffsetBackingStore(worker))


def test_a_lost_config_topic_is_an_error_and_not_the_last_snapshot(worker: WorkerConfig, opened: Open) -> None:
    configs = opened(KafkaConfigBackingStore(worker))
    configs.put_connector("a", {})
    delete(worker, worker.config_topic)

    def refused() -> bool:
        try:
            configs.snapshot()
        except InternalTopicError:
            return True
        return False

    eventually(refused)


def test_a_recreated_topic_is_an_error_and_does_not_count_as_empty(worker: WorkerConfig, opened: Open) -> None:
    offsets = opened(KafkaOffsetBackingStore(worker))
    offsets.put("a", [({"p": 1}, {"o": 1})])
    offsets.get("a", [])
    delete(worker, worker.offset_topic)
    create(worker, 5, {"cleanup.policy": "compact"})
    for _ in range(2):
        with pytest.raises(InternalTopicError, match=worker.offset_topic):
            offsets.get("a", [{"p": 1}])


@pytest.mark.long
def test_stores_continue_after_a_broker_restart(tmp_path: Path, unique: Callable[[str], str], opened: Open) -> None:
    broker = EmbeddedBroker(tmp_path)
    worker = worker_for(broker.start(), unique)
    try:
        configs, offsets = opened(KafkaConfigBackingStore(worker)), opened(KafkaOffsetBackingStore(worker))
        configs.put_connector("a", {"k": "1"})
        offsets.put("a", [({"p": 1}, {"o": 1})])
        broker.stop()
        assert configs.snapshot().names() == ["a"]  # a stopped broker does not clear what was read
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


@pytest.mark.parametrize("name", ["(", "a b", "ö", "x" * 250, ".", "..", "a/b"])
def test_a_topic_whose_name_there_cannot_be_does_not_exist(kafka_bootstrap: str, name: str) -> None:
    assert partition_count(admin_client(WorkerConfig.of({"bootstrap.servers": kafka_bootstrap})), name) is None
