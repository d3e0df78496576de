from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConfigError, InternalTopicError
from sluiceway.storage.factory import Stores, open_stores
from sluiceway.storage.file_offset_backing_store import FileOffsetBackingStore
from sluiceway.storage.memory import MemoryConfigBackingStore, MemoryStatusBackingStore
from sluiceway.storage.topics import config_topic, offset_topic, status_topic


def test_standalone_stores_are_memory_and_the_workers_file(tmp_path: Path) -> None:
    worker = WorkerConfig.of({"offset.storage.file.filename": str(tmp_path / "offsets")})
    with open_stores(worker, standalone=True) as stores:
        stores.offsets.put("a", [({"p": 1}, {"o": 1})])
        assert (type(stores.config), type(stores.status)) == (MemoryConfigBackingStore, MemoryStatusBackingStore)
    assert (tmp_path / "offsets").exists()


def test_standalone_mode_requires_an_offsets_file() -> None:
    with pytest.raises(ConfigError, match=r"offset\.storage\.file\.filename"):
        open_stores(WorkerConfig.of({}), standalone=True)


class Spy:
    def __init__(self, events: list[str], name: str, error: Exception | None = None) -> None:
        self.events, self.name, self.error = events, name, error

    def start(self) -> None:
        self.events.append(f"start {self.name}")
        if self.error:
            raise self.error

    def stop(self) -> None:
        self.events.append(f"stop {self.name}")


def test_a_store_that_fails_to_start_stops_the_started_ones(tmp_path: Path) -> None:
    events: list[str] = []
    spies: list[Any] = [Spy(events, "config"), Spy(events, "status", InternalTopicError("no")), FileOffsetBackingStore(tmp_path)]
    with pytest.raises(InternalTopicError):
        Stores(*spies).start()
    assert events == ["start config", "start status", "stop status", "stop config"]


def test_topics_follow_the_workers_properties() -> None:
    worker = WorkerConfig.of(
        {
            "config.storage.topic": "c",
            "config.storage.replication.factor": "-1",
            "config.storage.min.insync.replicas": "2",
            "config.storage.cleanup.policy": "delete",
            "offset.storage.partitions": "7",
            "offset.storage.file.filename": "x",
        }
    )
    config, offsets, status = config_topic(worker), offset_topic(worker), status_topic(worker)
    assert (config.name, config.partitions, config.replication_factor, config.single_partition) == ("c", 1, -1, True)
    assert config.settings == {"min.insync.replicas": "2"}
    assert (offsets.name, offsets.partitions, offsets.replication_factor) == ("connect-offsets", 7, 3)
    assert offsets.settings == {}
    assert (status.name, status.partitions, status.key) == ("connect-status", 5, "status.storage.topic")
