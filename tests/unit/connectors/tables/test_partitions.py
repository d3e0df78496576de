"""Tables of both formats that are partitioned by a column of each type: every row is in the table as it was, or reported."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluiceway.api import TopicPartition
from sluiceway.connectors.path_elements import shortened
from sluiceway.connectors.tables.compaction import HISTORY_AGE_MS, MIN_FILES
from sluiceway.data import (
    INT64_SCHEMA,
    OPTIONAL_INT8_SCHEMA,
    OPTIONAL_INT64_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    Schema,
    Type,
    date_schema,
    decimal_schema,
    timestamp_schema,
)
from sluiceway.errors import ConnectError
from support.jdbc_sink import record
from support.table_sink import Lake, Task, compact

PEOPLE = TopicPartition("people", 0)
UPSERT = {"tables_upsert-mode-enabled": "true", "tables_default-id-columns": "id"}
NULL = "__HIVE_DEFAULT_PARTITION__"
UTC = dt.timezone.utc
BYTES = Schema(Type.BYTES, optional=True)
TYPES: Mapping[str, tuple[Schema, tuple[Any, ...]]] = {
    "boolean": (Schema(Type.BOOLEAN, optional=True), (True, False, None)),
    "int8": (OPTIONAL_INT8_SCHEMA, (1, -128, None)),
    "int64": (OPTIONAL_INT64_SCHEMA, (2**63 - 1, -(2**63), 0, None)),
    "float32": (Schema(Type.FLOAT32, optional=True), (0.5, -1.5, math.inf, math.nan, None)),
    "float64": (Schema(Type.FLOAT64, optional=True), (0.1, 1e300, 5e-324, -math.inf, math.nan, None)),
    "decimal": (decimal_schema(2, optional=True), (*map(Decimal, ("1.20", "-0.01", "-7.50", "-5.00", "0.00")), None)),
    "timestamp": (
        timestamp_schema(optional=True),
        (dt.datetime(2026, 1, 1, 1, 2, 3, 4000, tzinfo=UTC), dt.datetime(1900, 1, 1, tzinfo=UTC), None),
    ),
    "date": (date_schema(optional=True), (dt.date(2026, 1, 1), dt.date(1, 1, 1), None)),
    "string": (OPTIONAL_STRING_SCHEMA, ("a", "", "null", NULL, "a\n", "'", "😀", "ö/ %", None)),
    "long": (
        OPTIONAL_STRING_SCHEMA,
        ("x" * 251, "x" * 251 + "/a", "x" * 251 + "/b", "x" * 253, "x" * 254, "x" * 5000, "é" * 42, "é" * 43, "/" * 85),
    ),
}


def _refused(format_: str, value: Any) -> bool:
    if isinstance(value, float):
        return math.isnan(value) if format_ == "iceberg" else 1e300 <= abs(value) < math.inf or 0 < abs(value) < 1e-300
    if format_ == "iceberg" or value is None:
        return False
    if isinstance(value, Decimal):
        return value in (Decimal("-0.01"), Decimal("-7.50"))
    return isinstance(value, str) and (
        value in ("", NULL) or len("p=" + value) + 5 * value.count("é") + 2 * value.count("/") > 255
    )


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("more", [{}, UPSERT], ids=["append", "upsert"])
@pytest.mark.parametrize("format_", ["iceberg", "delta"])
def test_each_row_is_written_as_it_is_or_reported(tmp_path: Path, format_: str, more: Mapping[str, str], kind: str) -> None:
    (schema, values), lake = TYPES[kind], Lake(format_, tmp_path)
    task = Task(lake, lake.config(**more, **{"tables_default-partition-by": "p"}), [PEOPLE], reports=True)
    row = Schema.struct({"id": INT64_SCHEMA, "p": schema})
    for commit in range(2):
        first = commit * len(values)
        task.put(*(record(first + at, {"id": at}, {"id": at, "p": value}, schema=row) for at, value in enumerate(values)))
        assert task.commit(first + len(values)) == {PEOPLE: first + len(values)}
    kept = [(at, value) for at, value in enumerate(values) if not _refused(format_, value)]
    expected = sorted(repr(_plain(each)) for each in kept * (1 if more else 2))
    assert [repr(error_of.value["p"]) for error_of, _ in task.context.reported] == [
        repr(value) for value in values if _refused(format_, value)
    ] * 2
    for compacted in (False, True):
        assert sorted(repr(_plain((each["id"], each["p"]))) for each in task.rows()) == expected, f"compacted: {compacted}"
        compact(lake, **{MIN_FILES: "2", HISTORY_AGE_MS: "0"})


def _plain(row: tuple[int, Any]) -> tuple[int, Any]:
    number, value = row
    return number, value.astimezone(UTC).isoformat() if isinstance(value, dt.datetime) else value


def test_delta_has_no_table_by_a_binary_column(tmp_path: Path) -> None:
    lake = Lake("delta", tmp_path)
    task = Task(lake, lake.config(**{"tables_default-partition-by": "p"}), [PEOPLE])
    row = Schema.struct({"id": INT64_SCHEMA, "p": BYTES})
    with pytest.raises(ConnectError, match="partitioned by p, which is binary"):
        task.put(record(0, {"id": 0}, {"id": 0, "p": b"a"}, schema=row))


@settings(max_examples=200)
@given(st.text(st.sampled_from("abö%/2F"), min_size=1, max_size=400), st.text(st.sampled_from("ab%"), min_size=1))
def test_a_cut_name_is_a_path_element_of_its_own(element: str, more: str) -> None:
    cut = shortened(element)
    assert len(cut.encode()) <= 255
    assert shortened(element + more) != cut
    begin, _, mark = cut.partition("~")
    assert element.startswith(begin)
    assert (cut == element and len(element.encode()) <= 255) or (len(mark) == 64 and not begin[-2:].count("%"))
