from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluiceway.api.columns import Column, ColumnBatch, NotColumnar
from sluiceway.columns.arrays import to_array
from sluiceway.connectors.files.partitioners import FieldPartitioner
from sluiceway.data import BOOLEAN_SCHEMA, FLOAT64_SCHEMA, INT64_SCHEMA, STRING_SCHEMA, Schema, Struct
from sluiceway.errors import DataError
from support.file_sinks import record

INNER = Schema.struct({"c": BOOLEAN_SCHEMA})
VALUE = Schema.struct({"a": STRING_SCHEMA, "b": INT64_SCHEMA, "in": INNER})
BY = FieldPartitioner(["a", "b", "in.c"])


def struct(a: str, b: int, c: bool) -> Struct:
    return Struct(VALUE, {"a": a, "b": b, "in": Struct(INNER, {"c": c})})


def test_folders_by_fields() -> None:
    assert BY.encode(record(0, struct("x/y", -5, True), VALUE), 0) == "a=x%2Fy/b=-5/in.c=true"
    assert FieldPartitioner(["a"]).encode(record(0, {"a": 1}, None), 0) == "a=1"


@pytest.mark.parametrize("value", [{"a": 1.5}, {"a": None}, {"b": 1}, "text", {"a": "x" * 300}])
def test_values_without_a_folder_are_refused(value: object) -> None:
    with pytest.raises(DataError):
        FieldPartitioner(["a"]).encode(record(0, value, None), 0)


@given(st.lists(st.tuples(st.text(max_size=3), st.integers(-2, 2), st.booleans()), min_size=1, max_size=20))
def test_columns_have_the_folders_of_rows(values: list[tuple[str, int, bool]]) -> None:
    try:
        structs = [struct(*each) for each in values]
        array = to_array(VALUE, structs)
    except NotColumnar:  # an unpaired surrogate
        return
    encoded = BY.encode_columns(batch(VALUE, array), 0)
    assert encoded.indices is not None
    rows = [BY.encode(record(0, each, VALUE), 0) for each in structs]
    assert [encoded.names[index] for index in encoded.indices] == rows


def batch(schema: Schema, array: pa.Array) -> ColumnBatch:  # type: ignore[type-arg]
    return ColumnBatch(topic="t", partition=0, key=Column(None, None), value=Column(schema, array), count=len(array))


@pytest.mark.parametrize("by", ["nosuch", "f", "in.c.d"])
def test_columns_without_a_folder_are_left_to_rows(by: str) -> None:
    schema = Schema.struct({"f": FLOAT64_SCHEMA, "in": INNER})
    array = to_array(schema, [Struct(schema, {"f": 1.0, "in": Struct(INNER, {"c": True})})])
    with pytest.raises(NotColumnar):
        FieldPartitioner([by]).encode_columns(batch(schema, array), 0)


def test_many_fields_of_many_values() -> None:
    """The numbers of their values have a product of more than 64 bits."""
    rows, fields = 4_000, [f"f{number}" for number in range(6)]
    schema = Schema.struct(dict.fromkeys(fields, INT64_SCHEMA))
    structs = [Struct(schema, {field: row * (place + 1) for place, field in enumerate(fields)}) for row in range(rows)]
    partitioner = FieldPartitioner(fields)
    encoded = partitioner.encode_columns(batch(schema, to_array(schema, structs)), 0)
    assert encoded.indices is not None
    folders = [partitioner.encode(record(0, each, schema), 0) for each in structs]
    assert [encoded.names[index] for index in encoded.indices] == folders
