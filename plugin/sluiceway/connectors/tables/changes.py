"""Keeps the last change of each key, for upserts and deletions. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from sluiceway.connectors.tables.store import Merge
from sluiceway.errors import DataError

if TYPE_CHECKING:
    from sluiceway.connectors.tables.rows import Rows

ORDER, DELETED = "__sluiceway_order", "__sluiceway_deleted"


def keys_of(rows: Rows, id_columns: Sequence[str]) -> pa.Table:
    """Return the id columns of rows, from the values or else from the keys. Raises DataError if one is missing or null."""
    for table in (rows.values, rows.keys):
        if table is not None and set(id_columns) <= set(table.column_names):
            return _without_nulls(table.select(list(id_columns)))
    if rows.key is not None and len(id_columns) == 1:
        return _without_nulls(pa.table({id_columns[0]: rows.key}))
    raise DataError(
        f"Records of {rows.partition.topic} have no id columns {', '.join(id_columns)}, neither in the value nor in the key."
    )


def _without_nulls(keys: pa.Table) -> pa.Table:
    for name in keys.column_names:
        if keys.column(name).null_count:
            raise DataError(f"Id column {name} has no value in {keys.column(name).null_count} records.")
    return keys


def last_changes(batches: Sequence[pa.Table], id_columns: tuple[str, ...]) -> Merge:
    """Return the last change of each key of batches in the order they were read; of their columns the last is ``DELETED``."""
    changes = pa.concat_tables(batches)
    numbered = changes.append_column(ORDER, pa.array(range(len(changes)), pa.int64()))
    last = numbered.group_by(list(id_columns)).aggregate([(ORDER, "max")])
    kept = changes.take(last.column(f"{ORDER}_max").combine_chunks().sort())
    deleted = kept.column(DELETED)
    rows = kept.filter(pc.invert(deleted)).drop_columns([DELETED])
    return Merge(rows, kept.filter(deleted).select(list(id_columns)), id_columns)
