"""Checks of the folder source's formats: any cut of a file's bytes gives the same records, in row form and as columns."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

from sluiceway.columns.arrays import to_values
from sluiceway.columns.arrow_schema import arrow_type
from sluiceway.connectors.folder.formats import Records, Row
from sluiceway.data import Struct

CUTS = st.lists(st.integers(0, 80), max_size=4)


def plain(value: Any) -> Any:
    """Return the values of a struct as a list, and any other value as it is."""
    return list(value.values_) if isinstance(value, Struct) else value


def values(rows: Iterator[Row]) -> list[tuple[Any, bool]]:
    """Return the value of each row, and whether it is a bad one."""
    return [(plain(row.value), bool(row.reason)) for row in rows]


def check_cuts(records: Records, data: bytes, cuts: list[int]) -> None:
    """Check that data that comes in parts has the same records, and that each record's position is that after it."""
    whole = list(records.rows(data))
    assert all(first.end < second.end for first, second in pairwise(whole))
    found, start = [], 0
    for end in sorted({min(cut, len(data)) for cut in cuts} | {len(data)}):
        final = end == len(data)
        complete = records.complete(data[start:end], final=final)
        found += values(records.rows(data[start : start + complete]))
        if final and complete:
            assert records.unfinished(data[start:]) == records.unfinished(data)
        start += complete
    assert start == len(data)
    assert found == values(iter(whole))
    for index, row in enumerate(whole):
        assert values(records.rows(data[row.end :])) == values(iter(whole[index + 1 :]))


def check_columns(records: Records, data: bytes, most: int) -> bool:
    """Check that columns are what rows are. Return whether there were any."""
    columns = records.columns(data, most)
    if columns is None:
        return False
    rows = list(records.rows(data))[: columns.size]
    if columns.values is None:
        found = columns.objects
    else:
        assert records.schema is not None
        assert columns.values.type == arrow_type(records.schema)
        found = to_values(records.schema, columns.values)
    assert found is not None
    assert list(map(repr, map(plain, found))) == [repr(plain(row.value)) for row in rows]  # 1.0 is not 1.00
    assert len(rows) == columns.size <= most
    assert rows[-1].end == columns.length
    return True
