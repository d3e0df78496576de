"""Tables that another program has partitioned by a column of each type: all values are read, in a snapshot and in commits."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyiceberg.transforms import IdentityTransform

from sluiceway.errors import ConnectError
from support.table_source import Reading, SourceLake

UTC = dt.timezone.utc
TIMES = (dt.datetime(1, 1, 1, tzinfo=UTC), dt.datetime(2026, 1, 1, 1, 2, 3, 4000, UTC))
COLUMNS: dict[str, pa.Array[Any]] = {
    "boolean": pa.array([True, False, None]),
    "int8": pa.array([1, -128, None], pa.int8()),
    "int64": pa.array([2**63 - 1, -(2**63), None]),
    "float32": pa.array([0.5, 0.1, math.inf, None], pa.float32()),
    "float64": pa.array([0.1, 1e20, -math.inf, 5e-10, None]),
    "decimal": pa.array([Decimal("1.20"), Decimal("7.00"), Decimal("-5.00"), None], pa.decimal128(10, 2)),
    "date": pa.array([dt.date(1, 1, 1), dt.date(2026, 1, 1), None]),
    "timestamp": pa.array([*TIMES, None], pa.timestamp("us", "UTC")),
    "local timestamp": pa.array([*(time.replace(tzinfo=None) for time in TIMES), None], pa.timestamp("us")),
    "string": pa.array(["a", "null", "'", "ö/ %", "New York", "a=b:c?#&+", "%2F", "\n", "\\", None]),
}


def _append(lake: SourceLake, rows: pa.Table) -> None:
    if lake.format == "delta":
        write_deltalake(lake.location(), rows, mode="append", partition_by=["p"])
        return
    catalog = lake.catalog()
    if not catalog.table_exists("db.t"):
        catalog.create_namespace("db")
        with catalog.create_table("db.t", rows.schema).update_spec() as spec:
            spec.add_field("p", IdentityTransform())
    catalog.load_table("db.t").append(rows)


@pytest.mark.parametrize(
    ("format_", "kind"), [("delta", kind) for kind in COLUMNS] + [("iceberg", kind) for kind in COLUMNS if kind != "int8"]
)
def test_all_values_are_read(tmp_path: Path, format_: str, kind: str) -> None:
    lake, values = SourceLake(format_, tmp_path), COLUMNS[kind]
    rows = pa.table({"id": pa.array(range(len(values)), pa.int64()), "p": values})
    expected = [(number, _plain(value)) for number, value in enumerate(values.to_pylist())]
    _append(lake, rows)
    reading = Reading(lake, lake.config())
    for _ in range(2):  # a snapshot, and a commit
        found = sorted((record.value["id"], _plain(record.value["p"])) for record in reading.all())
        assert found == expected
        _append(lake, rows)


def _plain(value: Any) -> str:
    return value.replace(tzinfo=None).isoformat() if isinstance(value, dt.datetime) else repr(value)


def test_delta_tables_by_a_binary_column_are_refused(tmp_path: Path) -> None:
    lake = SourceLake("delta", tmp_path)
    _append(lake, pa.table({"id": pa.array([1]), "p": pa.array([b"a"])}))
    with pytest.raises(ConnectError, match="partitioned by p, which is binary"):
        Reading(lake, lake.config()).all()
