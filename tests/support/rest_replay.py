"""The REST app with stores in memory for recorded requests; tests write the driver's statuses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from fastapi.testclient import TestClient

from sluiceway.api import TopicPartition
from sluiceway.api.records import Offset, Partition
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConflictError
from sluiceway.herder import Herder
from sluiceway.herder.loggers import Loggers
from sluiceway.kafka.lag import PartitionBounds
from sluiceway.rest.app import make_app
from sluiceway.storage.codec import encode_offset_key
from sluiceway.storage.memory import MemoryConfigBackingStore, MemoryStatusBackingStore
from sluiceway.storage.model import State, Status, TargetState, TaskId

WORKER_ID = "<WORKER>"


class MemoryGroups:
    """Consumer groups of a cluster on which only some partitions exist; a busy group has members."""

    def __init__(self, places: Sequence[TopicPartition] = ()) -> None:
        self.places = set(places)
        self.committed: dict[str, dict[TopicPartition, int]] = {}
        self.busy: set[str] = set()
        self.opened_with: Mapping[str, str] = {}

    def offsets(self, group: str) -> dict[TopicPartition, int]:
        return dict(self.committed.get(group, {}))

    def missing(self, places: Sequence[TopicPartition]) -> list[TopicPartition]:
        return [place for place in places if place not in self.places]

    def counts(self) -> dict[str, int]:
        topics = [place.topic for place in self.places]
        return {topic: topics.count(topic) for topic in topics}

    def bounds(self, partitions: Sequence[TopicPartition], milliseconds: int | None) -> dict[TopicPartition, PartitionBounds]:
        """Return offsets 10 to 100 for each partition, of which one was written in each millisecond."""
        at = -1 if milliseconds is None or milliseconds >= 100 else max(milliseconds, 10)
        return dict.fromkeys(partitions, PartitionBounds(10, 100, at))

    def alter(self, group: str, offsets: Mapping[TopicPartition, int | None]) -> None:
        self._refuse_busy(group)
        kept = {**self.offsets(group), **offsets}
        self.committed[group] = {place: offset for place, offset in kept.items() if offset is not None}

    def delete(self, group: str) -> None:
        self._refuse_busy(group)
        self.committed.pop(group, None)

    def _refuse_busy(self, group: str) -> None:
        if group in self.busy:
            raise ConflictError("it has members")


class MemoryOffsets:
    """An offset store in memory."""

    def __init__(self) -> None:
        self._stored: dict[bytes, tuple[str, Partition, Offset]] = {}

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def get(self, connector: str, partitions: Sequence[Partition]) -> list[Offset | None]:
        found = [self._stored.get(encode_offset_key(connector, each)) for each in partitions]
        return [None if each is None else each[2] for each in found]

    def put(self, connector: str, offsets: Sequence[tuple[Partition, Offset | None]]) -> None:
        for partition, offset in offsets:
            key = encode_offset_key(connector, partition)
            if offset is None:
                self._stored.pop(key, None)
            else:
                self._stored[key] = (connector, partition, offset)

    def all(self, connector: str) -> list[tuple[Partition, Offset]]:
        return [(partition, offset) for name, partition, offset in self._stored.values() if name == connector]


class Connect:
    """The app, its stores, and a client."""

    def __init__(self, properties: Mapping[str, str] | None = None, places: Sequence[TopicPartition] = ()) -> None:
        self.worker = WorkerConfig.of(dict(properties or {}))
        self.config = MemoryConfigBackingStore(self.worker.applications)
        self.status, self.offsets = MemoryStatusBackingStore(), MemoryOffsets()
        self.groups, self.loggers = MemoryGroups(places), Loggers()
        self.herder = Herder(self.worker, self.config, self.status, self.offsets, open_groups=self._open_groups)
        app = make_app(lambda: self.herder, kafka_cluster_id=lambda: "<kafka_cluster_id>", loggers=self.loggers)
        self.http = TestClient(app, raise_server_exceptions=False)

    def _open_groups(self, _worker: WorkerConfig, admin: Mapping[str, str]) -> MemoryGroups:
        self.groups.opened_with = admin
        return self.groups

    def make(self, name: str, config: Mapping[str, str], state: State, tasks: Sequence[Mapping[str, Any]] = ()) -> None:
        """Create a connector in this state, with the statuses that its driver would write."""
        at_rest = state in (State.PAUSED, State.STOPPED)
        self.herder.create(name, dict(config), TargetState(state.value) if at_rest else None)
        self.config.put_task_configs(name, [task.get("config", {}) for task in tasks])
        self.status.put_connector(name, Status(state, WORKER_ID, 1, version="4.3.0"))
        for number, task in enumerate(tasks):
            status = Status(State(task.get("state", state.value)), WORKER_ID, 1, trace=task.get("trace"), version="4.3.0")
            self.status.put_task(TaskId(name, number), status)


def connector_in(path: str) -> str:
    """Return the connector that a path names."""
    return unquote(path.partition("?")[0].split("/")[2])
