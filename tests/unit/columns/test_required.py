"""Required fields of null structs get values that no reader sees."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sluiceway.columns.required import without_hidden_nulls

LEAVES = {
    "i": (pa.int64(), 1),
    "f": (pa.float32(), 1.5),
    "flag": (pa.bool_(), True),
    "text": (pa.string(), "a"),
    "data": (pa.binary(), b"a"),
    "number": (pa.decimal128(38, 2), Decimal("1.00")),
    "day": (pa.date32(), dt.date(2026, 1, 2)),
    "clock": (pa.time32("ms"), dt.time(1)),
    "at": (pa.timestamp("ms", "UTC"), dt.datetime(2026, 1, 2, tzinfo=dt.timezone.utc)),
    "items": (pa.list_(pa.int32()), [1]),
    "scores": (pa.map_(pa.string(), pa.int32()), [("a", 1)]),
}
STRUCT = pa.struct([pa.field(name, type_, nullable=False) for name, (type_, _) in LEAVES.items()])
VALUE = {name: value for name, (_, value) in LEAVES.items()}


ROWS = [None, VALUE, None]


def structs(type_: pa.StructType = STRUCT) -> pa.StructArray:
    """Return structs whose required fields are null where the struct is."""
    columns = [pa.array([row and row[field.name] for row in ROWS], field.type) for field in type_]
    return pa.StructArray.from_arrays(columns, fields=list(type_), mask=pa.array([row is None for row in ROWS]))


def cases() -> dict[str, Any]:
    found = structs()
    inner = pa.StructArray.from_arrays([found], fields=[pa.field("inner", STRUCT)])
    starts: Any = pa.array([0, 1, 1, 3], pa.int32())
    lists = pa.ListArray.from_arrays(starts, found, mask=pa.array([False, True, False]))
    keys: Any = pa.array(["a", "b", "c"])
    new_map: Any = pa.MapArray.from_arrays
    maps = new_map(starts, keys, found, mask=pa.array([False, True, False]))
    required = pa.struct([pa.field("struct", STRUCT, nullable=False)])
    deep = pa.StructArray.from_arrays([found], fields=list(required), mask=found.is_null())
    return {"structs": found, "inner": inner, "lists": lists, "slice": lists.slice(1), "maps": maps, "deep": deep}


@pytest.mark.parametrize("name", cases())
def test_writers_take_the_array_and_readers_see_the_same(name: str, tmp_path: Path) -> None:
    array = cases()[name]
    filled = without_hidden_nulls(array)
    filled.validate(full=True)
    assert filled.type == array.type
    assert filled.to_pylist() == array.to_pylist()
    pq.write_table(pa.table({"x": filled}), tmp_path / "file")
    assert pq.read_table(tmp_path / "file").column("x").to_pylist() == array.to_pylist()
