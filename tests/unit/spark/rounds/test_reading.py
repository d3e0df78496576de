"""Reading of a round: columns of a batch as a table's columns, and a limited number of bytes."""

from __future__ import annotations

from contextlib import ExitStack
from itertools import chain
from typing import Any

import pyarrow as pa
import pytest

from sluiceway.api import Column, ColumnBatch, NotColumnar
from sluiceway.columns.arrays import to_array
from sluiceway.data import Schema, Struct, Type, time_schema
from sluiceway.kafka import clients
from sluiceway.runtime.task import TaskSpec
from sluiceway.spark.rounds import reading
from sluiceway.spark.rounds.ranges import OffsetRange
from sluiceway.spark.rounds.reading import ByteLimit, RangeReader, _columns_of, _table_of

SCHEMA = Schema(Type.STRUCT, fields=[("id", Schema(Type.INT64)), ("city", Schema(Type.STRING, optional=True))])
VALUES = [Struct(SCHEMA, {"id": 1, "city": "a"}), Struct(SCHEMA, {"id": 2})]


def batch(schema: Schema, values: list[object]) -> ColumnBatch:
    return ColumnBatch(
        topic="t", partition=0, key=Column(None, None), value=Column(schema, to_array(schema, values)), count=len(values)
    )


def test_columns_are_the_table_of_their_records() -> None:
    assert _columns_of(batch(SCHEMA, list(VALUES)), replace_nulls=True) == _table_of(SCHEMA, VALUES)


def test_nulls_are_defaults_in_both_forms() -> None:
    schema = Schema(Type.STRUCT, fields=[("id", Schema(Type.INT64, default=3))])
    assert _columns_of(batch(schema, [Struct(schema)]), replace_nulls=True) == _table_of(schema, [Struct(schema)])
    assert _table_of(schema, [Struct(schema)]).to_pylist() == [{"id": 3}]


def test_a_value_that_is_no_struct_is_one_column() -> None:
    assert _table_of(Schema(Type.STRING), ["a"]).to_pylist() == [{"value": "a"}]
    with pytest.raises(NotColumnar, match="are not the columns of a table"):
        _columns_of(batch(Schema(Type.STRING), ["a"]), replace_nulls=True)


def test_a_time_is_a_number_in_both_forms() -> None:
    schema = Schema(Type.STRUCT, fields=[("at", time_schema(optional=True))])
    table = _columns_of(batch(schema, [Struct(schema)]), replace_nulls=True)
    assert table.schema.field("at").type == pa.int32()


class Message:
    def __init__(self, offset: int, value: bytes | None = b"12345678", key: bytes | None = b"12") -> None:
        self._offset, self._value, self._key = offset, value, key

    def offset(self) -> int:
        return self._offset

    def value(self) -> bytes | None:
        return self._value

    def key(self) -> bytes | None:
        return self._key

    def error(self) -> None:
        return None


class Log:
    """A consumer of messages of ten bytes at even offsets, three at a time."""

    def __init__(self, config: object) -> None:
        self._next = 0

    def assign(self, places: Any) -> None:
        self._next = places[0].offset

    def consume(self, most: int, timeout: float) -> list[Message]:
        start = self._next + self._next % 2
        self._next = start + 6
        return [Message(start), Message(start + 2), Message(start + 4)]

    def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("most", "offsets", "end"),
    [
        (100, [0, 2, 4, 6, 8], 10),
        (50, [0, 2, 4, 6, 8], 9),
        (49, [0, 2, 4, 6], 7),
        (30, [0, 2, 4], 5),
        (25, [0, 2], 3),
        (1, [0], 1),
    ],
)
def test_a_range_ends_early_once_it_has_enough_bytes(
    monkeypatch: pytest.MonkeyPatch, most: int, offsets: list[int], end: int
) -> None:
    monkeypatch.setattr(clients, "consumer", Log)
    monkeypatch.setattr(reading, "sink_consumer", lambda spec: ({}, None))
    spec: Any = object.__new__(TaskSpec)
    with ExitStack() as resources:
        reader = RangeReader(spec, 0, OffsetRange("t", 0, 0, 10), False, most, resources)
        found = [message.offset() for message in chain.from_iterable(reader._messages())]
    assert (found, reader.range.end) == (offsets, end)


def test_messages_without_key_and_value_have_no_bytes() -> None:
    messages: list[Any] = [Message(offset, None, None) for offset in range(5)]
    limit = ByteLimit(1)
    assert (limit.taken(messages), limit.reached) == (messages, False)
