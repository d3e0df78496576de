from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from sluiceway.api import TopicPartition
from sluiceway.connectors.mirror.source import MirrorSourceTask
from sluiceway.data import BYTES_SCHEMA, OPTIONAL_BYTES_SCHEMA, Header
from sluiceway.errors import ConfigError
from sluiceway.kafka import source_cluster
from sluiceway.kafka.source_cluster import SourcePartitionReader
from sluiceway.testing import MemoryOffsets, MemorySourceContext

CONFIG = {
    "name": "mm",
    "connector.class": "MirrorSource",
    "source.cluster.alias": "A",
    "target.cluster.alias": "B",
    "source.cluster.bootstrap.servers": "s:1",
    "target.cluster.bootstrap.servers": "t:1",
    "task.assigned.partitions": "t-0,t-1",
    "task.index": "0",
}


class Message:
    def __init__(self, offset: int, timestamp: tuple[int, int] = (1, 7), headers: Any = None, partition: int = 1) -> None:
        self._values = ("t", partition, offset, b"k", b"v", timestamp, headers)

    def topic(self) -> Any:
        return self._values[0]

    def partition(self) -> Any:
        return self._values[1]

    def offset(self) -> Any:
        return self._values[2]

    def key(self) -> Any:
        return self._values[3]

    def value(self) -> Any:
        return self._values[4]

    def timestamp(self) -> Any:
        return self._values[5]

    def headers(self) -> Any:
        return self._values[6]


class Reader:
    made: ClassVar[list[Reader]] = []

    def __init__(self, properties: Mapping[str, str], positions: Mapping[TopicPartition, int | None], _waiting: object) -> None:
        self.properties, self.positions, self.timeout, self.closed = properties, positions, -1.0, 0
        self.messages: list[Message] = []
        Reader.made.append(self)

    def poll(self, timeout: float) -> list[Message]:
        self.timeout = timeout
        messages, self.messages = self.messages, []
        return messages

    def close(self) -> None:
        self.closed += 1


class Writer:
    made: ClassVar[list[Writer]] = []

    def __init__(self, properties: Mapping[str, str], topic: str) -> None:
        self.properties, self.topic, self.written, self.closed = properties, topic, list[bytes](), 0
        Writer.made.append(self)

    def write(self, key: bytes, value: bytes) -> None:
        self.written.append(value)

    def poll(self) -> None: ...

    def close(self) -> None:
        self.closed += 1


@pytest.fixture(autouse=True)
def clients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_cluster, "SourcePartitionReader", Reader)
    monkeypatch.setattr(source_cluster, "BestEffortWriter", Writer)


def started(offsets: MemoryOffsets | None = None, **more: str) -> tuple[MirrorSourceTask, Reader]:
    config = {**CONFIG, **{key.replace("__", "-").replace("_", "."): value for key, value in more.items()}}
    task = MirrorSourceTask()
    task.initialize(MemorySourceContext(config, offsets))
    task.start(config)
    return task, Reader.made[-1]


def test_a_copy_differs_only_in_the_topic_name() -> None:
    task, reader = started()
    reader.messages = [Message(5, headers=[("h", b"\x00"), ("n", None)])]
    (record,) = task.poll() or ()
    assert (record.topic, record.kafka_partition, record.timestamp) == ("A.t", 1, 7)
    assert (record.key, record.key_schema, record.value, record.value_schema) == (b"k", OPTIONAL_BYTES_SCHEMA, b"v", BYTES_SCHEMA)
    assert record.source_partition == {"cluster": "A", "partition": 1, "topic": "t"}
    assert record.source_offset == {"offset": 5}
    assert record.headers == (Header("h", b"\x00", BYTES_SCHEMA), Header("n", None, OPTIONAL_BYTES_SCHEMA))


def test_a_missing_timestamp_stays_missing() -> None:
    task, reader = started()
    reader.messages = [Message(0, timestamp=(0, -1))]
    assert (task.poll() or ())[0].timestamp is None


def test_reading_resumes_after_the_stored_offset_or_at_the_start() -> None:
    offsets = MemoryOffsets()
    task, reader = started(offsets)
    reader.messages = [Message(5)]
    offsets.store_all(task.poll() or ())
    _, again = started(offsets)
    assert again.positions == {("t", 0): None, ("t", 1): 6}


def test_a_poll_waits_at_most_a_second_and_a_stopped_task_returns_none() -> None:
    task, reader = started(consumer_poll_timeout_ms="60000")
    assert task.poll() is None
    assert reader.timeout == 1.0
    task.stop()
    task.stop()
    assert (reader.closed, task.poll()) == (1, None)


def test_a_negative_timeout_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"consumer\.poll\.timeout\.ms: Timeout must not be negative"):
        started(consumer_poll_timeout_ms="-1")


def test_offset_syncs_are_written_for_copied_records() -> None:
    task, reader = started()
    writer = Writer.made[-1]
    reader.messages = [Message(5), Message(6), Message(7)]
    records = list(task.poll() or ())
    task.commit_record(records[0], 1, 50)
    task.commit_record(records[1], 1, 51)
    task.commit_record(records[2], -1, -1)  # filtered out by a transform
    assert [value[-1] for value in writer.written] == [50]
    task.commit()
    assert [value[-1] for value in writer.written] == [50, 51]
    assert (writer.topic, writer.properties["bootstrap.servers"]) == ("mm2-offset-syncs.B.internal", "s:1")
    task.stop()
    assert writer.closed == 1


def test_no_offset_syncs_are_written_if_they_are_disabled() -> None:
    before = len(Writer.made)
    task, reader = started(emit_offset__syncs_enabled="false")
    reader.messages = [Message(5)]
    for record in task.poll() or ():
        task.commit_record(record, 1, 50)
    task.commit()
    assert len(Writer.made) == before


def test_without_a_stored_offset_auto_offset_reset_none_is_refused() -> None:
    properties = {"bootstrap.servers": "localhost:1", "client.id": "c", "auto.offset.reset": "none"}
    with pytest.raises(ConfigError, match=r"auto\.offset\.reset"):
        SourcePartitionReader(properties, {TopicPartition("t", 0): None})
