"""The time by which a message belongs to an interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson
import pytest

from sluiceway.converters.json_converter import JsonConverter
from sluiceway.runtime.sink.record_time import NO_TIME, field_time, kafka_time

_AT = 1_767_229_200_000  # 2026-01-01T01:00:00Z


@dataclass(frozen=True)
class Message:
    content: Any
    at: int = _AT

    def topic(self) -> str:
        return "t"

    def value(self) -> bytes | None:
        return None if self.content is None else self.content if isinstance(self.content, bytes) else orjson.dumps(self.content)

    def timestamp(self) -> tuple[int, int]:
        return (0, -1) if self.at == NO_TIME else (1, self.at)


def _time(field: str, converter: JsonConverter | None, message: Any) -> int:
    return kafka_time(message) if converter is None else field_time(field, converter)(message)


@pytest.fixture
def schemaless() -> JsonConverter:
    converter = JsonConverter()
    converter.configure({"schemas.enable": "false"})
    return converter


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1_767_225_600_000, 1_767_225_600_000),
        (1_767_225_600_000.5, 1_767_225_600_000),
        ("2026-01-01", 1_767_225_600_000),
        ("2026-01-01T00:00:00Z", 1_767_225_600_000),
        ("2026-01-01T02:30:00+02:00", 1_767_227_400_000),
        ("2026-01-01T01:00:00.001Z", _AT),
        (_AT + 1, _AT),
        ("soon", _AT),
        (None, _AT),
        (True, _AT),
        ([1], _AT),
    ],
)
def test_a_field_has_the_time_unless_it_is_none_or_later_than_the_timestamp(
    schemaless: JsonConverter, value: Any, expected: int
) -> None:
    assert _time("at", schemaless, Message({"at": value})) == expected
    assert _time("order.at", schemaless, Message({"order": {"at": value}})) == expected


@pytest.mark.parametrize("value", [None, {}, {"order": None}, {"order": 1}, {"other": {"at": 1}}, [], "text", b"{"])
def test_the_timestamp_stands_in_for_a_field_that_is_missing(schemaless: JsonConverter, value: Any) -> None:
    assert _time("order.at", schemaless, Message(value)) == _AT


def test_a_timestamp_with_its_schema_is_read() -> None:
    schema = {"type": "int64", "name": "org.apache.kafka.connect.data.Timestamp", "version": 1, "field": "at", "optional": False}
    value = {"schema": {"type": "struct", "fields": [schema], "optional": False}, "payload": {"at": 1_767_225_600_123}}
    converter = JsonConverter()
    converter.configure({})
    assert _time("at", converter, Message(value)) == 1_767_225_600_123


def test_a_message_without_a_timestamp_has_no_time(schemaless: JsonConverter) -> None:
    assert _time("", None, Message({}, NO_TIME)) == NO_TIME
    assert _time("at", schemaless, Message({"at": 5}, NO_TIME)) == NO_TIME, "Kafka would not find it by its time"
