"""The common schema of a round's records, and ranges that ended early."""

from __future__ import annotations

import pyarrow as pa
import pytest

from sluiceway.errors import ConnectError
from sluiceway.spark.rounds.ranges import OffsetRange
from sluiceway.spark.rounds.reading import DecodeChunks
from sluiceway.spark.rounds.sink_round import RangeResult, _common_schema

V1 = pa.schema([pa.field("id", pa.int64(), nullable=False)])
V2 = V1.append(pa.field("price", pa.float64(), nullable=False))


def serialized(*schemas: pa.Schema) -> list[bytes]:
    return [schema.serialize().to_pybytes() for schema in schemas]


def test_a_column_that_some_versions_lack_is_nullable() -> None:
    common = _common_schema(serialized(V1, V2))
    assert {field.name: field.nullable for field in common} == {"id": False, "price": True}


def test_a_wider_type_wins() -> None:
    narrow = pa.schema([pa.field("id", pa.int32())])
    assert _common_schema(serialized(narrow, V1)).field("id").type == pa.int64()


def test_types_that_do_not_fit_are_an_error() -> None:
    with pytest.raises(ConnectError, match="cannot be written as one table"):
        _common_schema(serialized(V1, pa.schema([pa.field("id", pa.string())])))


def test_chunks_of_all_versions_come_back_with_one_schema() -> None:
    common = _common_schema(serialized(V1, V2))
    streams = []
    for schema, row in ((V1, {"id": 1}), (V2, {"id": 2, "price": 1.5})):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, schema) as writer:
            writer.write_batch(pa.RecordBatch.from_pylist([row], schema=schema))
        streams.append(sink.getvalue().to_pybytes())
    chunks = pa.RecordBatch.from_pydict({"data": pa.array(streams, pa.binary())})
    rows = [row for batch in DecodeChunks(common.serialize().to_pybytes())([chunks]) for row in batch.to_pylist()]
    assert rows == [{"id": 1, "price": None}, {"id": 2, "price": 1.5}]


def test_a_range_that_ended_early_raises_its_reason() -> None:
    whole = OffsetRange("t", 0, 0, 10)
    RangeResult(whole, 10, 10, None).check()
    with pytest.raises(ConnectError, match="bad record"):
        RangeResult(whole, 3, 3, "bad record").check()
