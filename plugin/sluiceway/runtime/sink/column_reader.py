"""Converts Kafka messages to batches of columns. Loads Arrow, so import it only when the first large batch comes."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from sluiceway.api import (
    Column,
    ColumnBatch,
    ColumnDecoder,
    ColumnRun,
    Converter,
    NotColumnar,
    Refusal,
    RowFormReason,
    row_form,
)
from sluiceway.kafka.clients import ConsumedMessage, Message
from sluiceway.runtime.columns import FEW_RECORDS, FEWEST_RECORDS
from sluiceway.runtime.sink.sink_batches import SinkPart
from sluiceway.runtime.task_converters import Converters

_NO_TIMESTAMP = -1
_PARTITION, _TOPIC, _OFFSET, _TIMESTAMP = Message.partition, Message.topic, Message.offset, Message.timestamp
_first, _second = operator.itemgetter(0), operator.itemgetter(1)
_HEADERS, _KEY, _VALUE = Message.headers, Message.key, Message.value

_WITH_HEADERS = Refusal(RowFormReason.HEADERS)
_NOT_DECODED = Refusal(RowFormReason.CONVERTER, "a converter leaves messages to its row form")
_SEVERAL_TYPES = "timestamps of several types"


class ColumnReader:
    """Splits polled messages into parts with and without columns. Belongs to one task. Not thread-safe."""

    def __init__(self, converters: Converters, new_topic: Callable[[str], None]) -> None:
        self._converters = converters
        self._new_topic = new_topic
        self._decoders: dict[str, tuple[_PartDecoder, _PartDecoder]] = {}

    def parts(self, messages: Sequence[ConsumedMessage], *, one_topic: bool) -> list[SinkPart]:
        """Return the messages in order, in as few parts as possible.

        Messages without a columnar form, and short runs of one partition, are left to the row form, which also handles bad
        messages. ``one_topic`` says that all messages are of one topic.
        """
        parts: list[SinkPart] = []
        for run in _runs_of_partitions(messages, one_topic=one_topic):
            for part in self._decoded(run) if len(run) >= FEWEST_RECORDS else (SinkPart(run, refusal=FEW_RECORDS),):
                if part.columns is None and parts and parts[-1].columns is None:
                    parts[-1] = parts[-1].with_more(part)
                else:
                    parts.append(part)
        return parts

    def _decoded(self, run: Sequence[ConsumedMessage]) -> list[SinkPart]:
        """Return the parts of messages of one topic partition."""
        topic, partition = run[0].topic(), run[0].partition()
        decode_key, decode_value = self._decoders_for(topic)
        if any(map(_HEADERS, run)):  # type: ignore[arg-type]  # ConsumedMessage is a Message
            return [SinkPart(run, refusal=_WITH_HEADERS)]
        try:
            values = decode_value(list(map(_VALUE, run)))  # type: ignore[arg-type]
            keys = decode_key(list(map(_KEY, run)))  # type: ignore[arg-type]
        except NotColumnar as error:
            return [SinkPart(run, refusal=error.refusal)]
        timestamp_type = run[0].timestamp()[0]
        if run[-1].timestamp()[0] != timestamp_type:
            return [SinkPart(run, refusal=Refusal(RowFormReason.VALUE, _SEVERAL_TYPES))]
        parts = []
        for start, end, key, value in _segments(keys, values):
            if isinstance(key, Refusal) or isinstance(value, Refusal):
                parts.append(SinkPart(run[start:end], refusal=key if isinstance(key, Refusal) else value))  # type: ignore[arg-type]
                continue
            messages = run if end - start == len(run) else run[start:end]
            columns = ColumnBatch(
                topic=topic,
                partition=partition,
                key=key,
                value=value,
                count=end - start,
                timestamps=functools.partial(_timestamps, messages, timestamp_type) if timestamp_type else None,
                timestamp_type=timestamp_type,
                offsets=functools.partial(_offsets, messages),
                original_topic=topic,
            )
            parts.append(SinkPart(messages, columns))
        return parts

    def _decoders_for(self, topic: str) -> tuple[_PartDecoder, _PartDecoder]:
        decoders = self._decoders.get(topic)
        if decoders is None:
            self._new_topic(topic)
            decoders = _PartDecoder(self._converters.key, topic), _PartDecoder(self._converters.value, topic)
            self._decoders[topic] = decoders
        return decoders


class _PartDecoder:
    """Decodes the keys or the values of one topic's messages."""

    def __init__(self, converter: Converter, topic: str) -> None:
        self._converter = converter
        self._topic = topic
        self._decode: ColumnDecoder | None = converter.column_decoder(topic)

    def __call__(self, data: list[bytes | None]) -> Sequence[ColumnRun]:
        """Return runs that cover the messages. Raises NotColumnar."""
        if not any(data) and data.count(None) == len(data):
            return [ColumnRun(0, len(data), self._nulls(len(data)))]
        if self._decode is None:
            raise NotColumnar(f"{type(self._converter).__name__} has no columnar form to read", RowFormReason.CONVERTER)
        return self._decode(pa.array(data, pa.binary()))

    def _nulls(self, count: int) -> Column:
        with row_form():
            schema, value = self._converter.decoder(self._topic)(None)
        if value is not None:
            raise NotColumnar(f"{type(self._converter).__name__} reads null as a value", RowFormReason.CONVERTER)
        if schema is None:
            return Column(None, None)
        from sluiceway.columns.arrow_schema import arrow_type

        null_type: Any = arrow_type(schema)
        return Column(schema, pa.nulls(count, null_type))


def _runs_of_partitions(messages: Sequence[ConsumedMessage], *, one_topic: bool) -> Iterator[Sequence[ConsumedMessage]]:
    """Yield runs of successive messages of one topic partition."""
    partitions: Iterable[object] = map(_PARTITION, messages)  # type: ignore[arg-type]  # ConsumedMessage is a Message
    places = partitions if one_topic else zip(map(_TOPIC, messages), partitions, strict=True)  # type: ignore[arg-type]
    end = 0
    for _, run in itertools.groupby(places):
        start, end = end, end + len(list(run))
        yield messages if end - start == len(messages) else messages[start:end]


def _timestamps(messages: Sequence[ConsumedMessage], timestamp_type: int) -> pa.Int64Array:
    """Return the timestamps. Raises NotColumnar if they are not all of this type."""
    pairs = list(map(_TIMESTAMP, messages))  # type: ignore[arg-type]  # ConsumedMessage is a Message
    if set(map(_first, pairs)) != {timestamp_type}:
        raise NotColumnar(_SEVERAL_TYPES)
    values = list(map(_second, pairs))
    if _NO_TIMESTAMP not in values:
        return pa.array(values, pa.int64())
    return pa.array([None if value == _NO_TIMESTAMP else value for value in values], pa.int64())


def _offsets(messages: Sequence[ConsumedMessage]) -> pa.Int64Array:
    return pa.array(list(map(_OFFSET, messages)), pa.int64())  # type: ignore[arg-type]


_Part = Column | Refusal


def _segments(keys: Sequence[ColumnRun], values: Sequence[ColumnRun]) -> Iterator[tuple[int, int, _Part, _Part]]:
    """Yield the ranges in which both the keys and the values have one schema, with their columns, or why they have none."""
    start, key_number, value_number = 0, 0, 0
    while key_number < len(keys) and value_number < len(values):
        key, value = keys[key_number], values[value_number]
        end = min(key.end, value.end)
        if end > start:
            yield start, end, _part_of(key, start, end), _part_of(value, start, end)
        start = end
        key_number += key.end == end
        value_number += value.end == end


def _part_of(run: ColumnRun, start: int, end: int) -> _Part:
    column = run.column
    if column is None:
        return run.refusal or _NOT_DECODED
    if run.start == start and run.end == end:
        return column
    part = slice(start - run.start, end - run.start)
    schema, values, objects = column
    return Column(schema, None if values is None else values[part], None if objects is None else objects[part])
