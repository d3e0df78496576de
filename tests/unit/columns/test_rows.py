"""Records and column batches: each is the other's form."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sluiceway.api import SinkRecord
from sluiceway.api.columns import Column, ColumnBatch
from sluiceway.columns.rows import column_batches, column_of, sink_records
from sluiceway.data import INT64_SCHEMA, OPTIONAL_STRING_SCHEMA, STRING_SCHEMA, Header, Schema, Struct, timestamp_schema
from sluiceway.data.instant import Instant
from support.column_forms import many

POINT = Schema.struct({"x": INT64_SCHEMA, "label": OPTIONAL_STRING_SCHEMA})
DATA: list[tuple[Schema | None, Any]] = [
    (None, None),
    (None, "schemaless"),
    (None, {"a": 1}),
    (STRING_SCHEMA, "a"),
    (OPTIONAL_STRING_SCHEMA, None),
    (OPTIONAL_STRING_SCHEMA, "b"),
    (POINT, Struct.of(POINT, [1, None])),
    (POINT, Struct.of(POINT, [2, "two"])),
    (timestamp_schema(), Instant(1 << 60)),
]


@st.composite
def records(draw: Any) -> list[SinkRecord]:
    made = []
    for offset in range(draw(st.integers(0, 8))):
        key_schema, key = draw(st.sampled_from(DATA))
        value_schema, value = draw(st.sampled_from(DATA))
        headers = (Header("h", 1),) if draw(st.integers(0, 9)) == 0 else ()
        timestamp = draw(st.sampled_from([None, 5, -5]))
        record = SinkRecord("t", draw(st.integers(0, 1)), offset, value, value_schema, key, key_schema, timestamp, 1, headers)
        if draw(st.booleans()):
            record.topic = "routed"
        if draw(st.integers(0, 9)) == 0:
            record.kafka_offset += 1
        made.append(record)
    return made


def attributes(record: SinkRecord) -> dict[str, Any]:
    return {name: getattr(record, name) for name in SinkRecord.__slots__}


@many
@given(records())
def test_batches_hold_the_same_records(given_records: list[SinkRecord]) -> None:
    batches = column_batches(given_records)
    back = [record for batch in batches for record in (sink_records(batch) if isinstance(batch, ColumnBatch) else batch)]
    assert list(map(attributes, back)) == list(map(attributes, given_records))
    for batch in batches:
        if isinstance(batch, list):
            assert all(
                record.headers
                or record.kafka_offset != record.original_kafka_offset
                or {type(record.key), type(record.value)} & {Instant}
                for record in batch
            )


def test_records_of_one_schema_are_one_batch() -> None:
    (batch,) = column_batches([SinkRecord("t", 3, offset, "x", STRING_SCHEMA) for offset in range(5)])
    assert isinstance(batch, ColumnBatch)
    assert (batch.topic, batch.original_topic, batch.partition, len(batch)) == ("t", "t", 3, 5)
    assert (batch.key, batch.timestamps) == (Column(None, None), None)


def test_schemaless_values_are_objects() -> None:
    assert column_of(None, [None, 1]) == Column(None, None, [None, 1])
    assert column_of(None, [None, None]) == Column(None, None)
