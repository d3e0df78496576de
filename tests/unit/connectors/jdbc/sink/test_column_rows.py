"""Rows of batches of columns are those of their records."""

from __future__ import annotations

import functools
from zoneinfo import ZoneInfo

import pytest

from sluiceway.api import ColumnBatch, SinkRecord
from sluiceway.columns.rows import column_batches
from sluiceway.connectors.jdbc.dialects import dialect_of
from sluiceway.connectors.jdbc.sink.column_rows import rows_of
from sluiceway.connectors.jdbc.sink.columns import layout_of
from sluiceway.connectors.jdbc.sink.config import SinkOptions
from sluiceway.connectors.jdbc.sink.types import binder_of
from sluiceway.data import INT64_SCHEMA, OPTIONAL_STRING_SCHEMA, STRING_SCHEMA, Schema, Struct

VALUE = Schema.struct({"id": INT64_SCHEMA, "name": OPTIONAL_STRING_SCHEMA})
OFFSETS = (40, 41, 45)  # neither from 0 nor without gaps: a batch may start anywhere, and compacted topics have gaps


@pytest.mark.parametrize(
    ("config", "first"),
    [
        ({"pk.mode": "none"}, (0, None)),
        ({"pk.mode": "kafka"}, ("people", 2, 40, 0, None)),
        ({"pk.mode": "record_key", "pk.fields": "code"}, ("k40", 0, None)),
        ({"pk.mode": "record_value", "pk.fields": "name"}, (None, 0)),
    ],
)
def test_each_pk_mode_has_the_rows_of_its_records(config: dict[str, str], first: tuple[object, ...]) -> None:
    names = (None, "Ann", "Bo")
    records = [
        SinkRecord("people", 2, offset, Struct(VALUE, {"id": number, "name": name}), VALUE, f"k{offset}", STRING_SCHEMA)
        for number, (offset, name) in enumerate(zip(OFFSETS, names, strict=True))
    ]
    options = SinkOptions.of({"connection.url": "jdbc:sqlite:people.db", **config})
    bind = functools.partial(binder_of, dialect_of("sqlite"), ZoneInfo("UTC"))
    layout = layout_of(options, bind, STRING_SCHEMA, VALUE, tombstone=False)
    (batch,) = column_batches(records)
    assert isinstance(batch, ColumnBatch)
    rows = rows_of(layout, batch)
    assert rows[0] == first
    assert rows == [layout.row(record) for record in records]
