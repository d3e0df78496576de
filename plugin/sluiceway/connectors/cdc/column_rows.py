"""Rows of a table as columns of raw values, as databases send them. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import pyarrow as pa

from sluiceway.connectors.cdc.tables import Row

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray


class RawColumn(NamedTuple):
    """The raw values of a column: an array, or a list of values of which an array cannot have some.

    ``unavailable`` tells where the log does not contain the values of an array; there these are null.
    """

    values: AnyArray | list[Any]
    unavailable: AnyArray | None = None


def raw_columns(rows: Sequence[Row]) -> list[RawColumn]:
    if isinstance(rows, ColumnRows):
        return rows.columns
    return [raw_column(values) for values in zip(*rows, strict=True)]


def raw_column(values: Sequence[Any]) -> RawColumn:
    try:
        return RawColumn(pa.array(values))
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return RawColumn(list(values))


class ColumnRows(Sequence[Row]):
    """Rows of which the columns are kept, without unavailable values. Slices share their memory."""

    def __init__(self, columns: list[RawColumn], count: int) -> None:
        self.columns = columns
        self._count = count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Row: ...

    @overload
    def __getitem__(self, index: slice) -> ColumnRows: ...

    def __getitem__(self, index: int | slice) -> Row | ColumnRows:
        if isinstance(index, slice):
            chosen = range(self._count)[index]
            return ColumnRows([RawColumn(column.values[index]) for column in self.columns], len(chosen))
        return next(iter(self[index : index + 1 or None]))

    def __iter__(self) -> Iterator[Row]:
        return zip(*(v if isinstance(v, list) else v.to_pylist() for v, _ in self.columns), strict=True)

    def select(self, indexes: Sequence[int | None]) -> ColumnRows:
        """Return the rows with the columns at ``indexes``; None is a column of nulls."""
        null = RawColumn(pa.nulls(self._count))
        return ColumnRows([null if index is None else self.columns[index] for index in indexes], self._count)


Rows = list[Row] | ColumnRows
"""Rows that have been read together."""
