from __future__ import annotations

import struct
from typing import Any, NamedTuple

from sluiceway.api import TopicPartition
from sluiceway.java_plugins.messages import packed_messages, runs_of
from sluiceway.runtime.sink.java_batches import positions_of


class Message:
    """Stands for a consumed message."""

    def __init__(self, topic: str, partition: int, offset: int, *data: Any) -> None:
        self._place = topic, partition, offset
        self._data = (*data, *(None, None, None)[len(data) :])

    def topic(self) -> str:
        return self._place[0]

    def partition(self) -> int:
        return self._place[1]

    def offset(self) -> int:
        return self._place[2]

    def timestamp(self) -> tuple[int, int]:
        return 1, 1000 + self._place[2]

    def key(self) -> bytes | None:
        return self._data[0]

    def value(self) -> bytes | None:
        return self._data[1]

    def headers(self) -> Any:
        return self._data[2]


class Columns(NamedTuple):
    offsets: tuple[int, ...]
    timestamps: tuple[int, ...]
    types: tuple[int, ...]
    lengths: list[tuple[int, ...]]
    data: bytes


def unpacked(count: int, data: bytes) -> Columns:
    longs = struct.unpack_from(f"<{2 * count}q", data)
    ints = struct.unpack_from(f"<{4 * count}i", data, 16 * count)
    rows = [ints[at : at + count] for at in range(0, 4 * count, count)]
    return Columns(longs[:count], longs[count:], rows[0], rows[1:], data[32 * count :])


def test_messages_are_packed_in_columns() -> None:
    messages: Any = [
        Message("t", 0, 7, b"k", b"value", [("é", b"1"), ("none", None)]),
        Message("t", 0, 9, None, b"", None),
        Message("t", 1, 3, b"", None, []),
    ]
    runs, data = packed_messages(messages)
    assert runs == [("t", 0, 2), ("t", 1, 1)]
    found = unpacked(3, data)
    assert (found.offsets, found.timestamps, found.types) == ((7, 9, 3), (1007, 1009, 1003), (1, 1, 1))
    header = (
        struct.pack("<i", 2) + "é".encode() + struct.pack("<i", 1) + b"1" + struct.pack("<i", 4) + b"none" + struct.pack("<i", -1)
    )
    assert found.lengths == [(1, -1, 0), (5, 0, -1), (len(header), -1, 0)]
    assert found.data == b"k" + b"value" + header


def test_no_messages_are_no_runs() -> None:
    assert packed_messages([]) == ([], b"")


def test_positions_are_those_of_each_partition() -> None:
    a, b = TopicPartition("t", 0), TopicPartition("u", 0)
    messages: Any = [Message("t", 0, 4), Message("t", 0, 6), Message("u", 0, 1), Message("t", 0, 7), Message("u", 0, 2)]
    assert runs_of(messages) == [("t", 0, 2), ("u", 0, 1), ("t", 0, 1), ("u", 0, 1)]
    starts = {a: 4, b: 1}
    assert positions_of(messages, 5) == (starts, {a: 8, b: 3})
    assert positions_of(messages, 4) == (starts, {a: 8, b: 2})
    assert positions_of(messages, 2) == (starts, {a: 7, b: 1})
    assert positions_of(messages, 1) == (starts, {a: 5, b: 1})
    assert positions_of(messages, 0) == (starts, {a: 4, b: 1})
