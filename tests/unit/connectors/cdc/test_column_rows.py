"""Rows whose columns are kept."""

from __future__ import annotations

from sluiceway.connectors.cdc.column_rows import ColumnRows, raw_columns

_ROWS = [("1", b"x", None), ("2", None, None), ("3", b"", None)]


def _columns(rows: list[tuple[str, bytes | None, None]]) -> ColumnRows:
    return ColumnRows(raw_columns(rows), len(rows))


def test_rows_slices_and_selections() -> None:
    rows = _columns(_ROWS)
    assert len(rows) == 3
    assert list(rows) == _ROWS
    assert [rows[0], rows[-1]] == [_ROWS[0], _ROWS[-1]]
    assert (len(rows[:-1]), list(rows[:-1])) == (2, _ROWS[:-1])
    assert list(rows[-1:]) == _ROWS[-1:]
    assert list(rows.select([1, None, 0])) == [(b"x", None, "1"), (None, None, "2"), (b"", None, "3")]
