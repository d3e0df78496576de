from __future__ import annotations

from typing import Any

import orjson
import pytest

from sluiceway.api import SinkTask, SourceRecord
from sluiceway.converters.json_converter import JsonConverter
from sluiceway.data import INT32_SCHEMA, Header
from sluiceway.errors import DataError
from sluiceway.kafka.dead_letter_headers import CONTEXT_PREFIX
from sluiceway.runtime.errors.dead_letter_record import dead_letter_record
from sluiceway.runtime.errors.processing_context import ConsumerRecord, ProcessingContext, Stage
from unit.runtime.error_handling import TASK


def test_a_record_without_a_timestamp_has_none_in_the_dead_letter_queue() -> None:
    message = ConsumerRecord("t", 0, 0, 0, -1, None, None)
    letter = dead_letter_record(ProcessingContext(Stage.TASK_PUT, SinkTask, message), DataError(""), TASK, context_headers=True)
    assert (letter.key, letter.value, letter.timestamp) == (None, None, None)
    assert dict(letter.headers)[f"{CONTEXT_PREFIX}exception.message"] is None


@pytest.mark.parametrize(
    ("record", "value"),
    [
        (SourceRecord({"f": 1}, {"p": 2}, "t", {"a": [1, "x"]}), {"a": [1, "x"]}),
        (SourceRecord({"f": 1}, {"p": 2}, "t", "not a number", INT32_SCHEMA), "not a number"),
        (SourceRecord({"f": 1}, {"p": 2}, "t", {1, 2}), None),
        (SourceRecord({"f": 1}, {"p": 2}, "t", None), None),
    ],
)
def test_a_sources_dead_letter_queue_record_is_json_or_else_a_string(record: SourceRecord, value: Any) -> None:
    letter = dead_letter_record(
        ProcessingContext(Stage.TRANSFORMATION, JsonConverter, record), DataError("bad"), TASK, context_headers=True
    )
    if value is None and record.value is not None:
        assert isinstance(orjson.loads(letter.value or b""), str)
    else:
        assert (orjson.loads(letter.value) if letter.value is not None else None) == value
    headers = dict(letter.headers)
    assert headers["__sluiceway.errors.source.partition"] == b'{"f":1}'
    assert headers["__sluiceway.errors.source.offset"] == b'{"p":2}'
    assert headers["__connect.errors.topic"] == b"t"
    assert "__connect.errors.offset" not in headers


def test_the_headers_of_a_source_record_are_kept() -> None:
    record = SourceRecord({}, {}, "t", None, headers=(Header("h", 1, INT32_SCHEMA), Header("bad", object())))
    letter = dead_letter_record(
        ProcessingContext(Stage.TRANSFORMATION, JsonConverter, record), DataError("bad"), TASK, context_headers=False
    )
    assert letter.headers[0] == ("h", b"1")
    assert letter.headers[1][0] == "bad"
