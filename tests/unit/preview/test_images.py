"""Records and bytes as JSON."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pytest

from sluiceway.api import SinkRecord, SourceRecord
from sluiceway.data import INT64_SCHEMA, OPTIONAL_STRING_SCHEMA, STRING_SCHEMA, Header, Schema, Struct
from sluiceway.preview.images import LARGEST, Clip, record_image, schema_text, written_image

ROW = Schema.struct({"id": INT64_SCHEMA, "name": OPTIONAL_STRING_SCHEMA}, name="orders.Value")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, None),
        (True, True),
        (7, 7),
        (2**60, str(2**60)),
        (1.5, 1.5),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        (Decimal("1.20"), "1.20"),
        (dt.date(2026, 1, 31), "2026-01-31"),
        ([1, "a"], [1, "a"]),
        ({1: "a"}, {"1": "a"}),
        (Struct(ROW, {"id": 1}), {"id": 1, "name": None}),
        (b"text", {"size": 4, "text": "text"}),
        (b"\x00\x01", {"size": 2, "base64": "AAE="}),
        ("\ud800", "?"),
    ],
)
def test_data_is_shown_as_json(value: object, shown: object) -> None:
    assert Clip().data(value) == shown


@pytest.mark.parametrize(
    "value",
    [
        "x" * (LARGEST * 2),
        b"x" * (LARGEST * 2),
        b"\x00" * (LARGEST * 2),
        ["x"] * (LARGEST * 2),
        {str(n): n for n in range(LARGEST)},
    ],
)
def test_a_large_value_is_clipped_and_says_so(value: Any) -> None:
    image = record_image(SourceRecord({"a": 1}, {"b": 2}, "t", value))
    assert image["clipped"] is True
    assert len(json.dumps(image)) < LARGEST * 4


def test_nested_data_is_bounded() -> None:
    value: list[Any] = []
    for _ in range(100):
        value = [value]
    assert record_image(SourceRecord({}, {}, "t", value))["clipped"] is True


def test_the_size_of_clipped_bytes_is_that_of_all() -> None:
    assert written_image("t", None, b"\x00" * 100_000, {})["value"]["size"] == 100_000


def test_a_source_record_shows_its_position_and_schemas() -> None:
    headers = (Header("h", 1, INT64_SCHEMA),)
    record = SourceRecord({"file": "f"}, {"at": 3}, "t", Struct(ROW, {"id": 1}), ROW, "k", STRING_SCHEMA, 2, 5, headers)
    assert record_image(record) == {
        "topic": "t",
        "partition": 2,
        "timestamp": 5,
        "key": {"schema": "string", "data": "k"},
        "value": {"schema": "struct orders.Value {id: int64, name: string?}", "data": {"id": 1, "name": None}},
        "headers": [{"key": "h", "schema": "int64", "data": 1}],
        "source_partition": {"file": "f"},
        "source_offset": {"at": 3},
    }


def test_a_sink_record_shows_the_offset_it_was_read_from() -> None:
    assert record_image(SinkRecord("t", 1, 9, None))["offset"] == 9


def test_written_bytes_show_what_the_producer_is_given() -> None:
    image = written_image("t", b"k", None, {"headers": [("h", None), ("i", b"1")], "partition": 3, "timestamp": 4})
    assert image == {
        "topic": "t",
        "partition": 3,
        "timestamp": 4,
        "key": {"size": 1, "text": "k"},
        "value": None,
        "headers": [{"key": "h", "value": None}, {"key": "i", "value": {"size": 1, "text": "1"}}],
    }


def test_schemas_are_shown_in_one_line() -> None:
    assert schema_text(None) is None
    assert schema_text(Schema.array(INT64_SCHEMA)) == "array<int64>"
    assert schema_text(Schema.map(STRING_SCHEMA, ROW, optional=True)) == (
        "map<string, struct orders.Value {id: int64, name: string?}>?"
    )
