"""Finds the data files that hold rows of some keys, and their other rows.

PyIceberg neither writes nor reads equality deletes, so a changed row means that its data file is rewritten.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg import expressions
from pyiceberg.expressions import AlwaysTrue, And, BooleanExpression

from sluiceway.connectors.iceberg.data_files import read

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table

    from sluiceway.connectors.tables.store import Merge

_IN_LIMIT = 200  # the number of values up to which Iceberg compares each with a file's statistics
_ROW = "__sluiceway_row"
_new: Any = expressions  # its type hints are those of the generated constructors


def rewritten(table: Table, branch: str, merge: Merge) -> Iterator[tuple[DataFile, pa.Table]]:
    """Yield each data file that holds rows of the merge's keys, with its other rows."""
    keys = pa.concat_tables([merge.rows.select(list(merge.id_columns)), merge.deleted], promote_options="permissive")
    if not len(keys) or table.metadata.snapshot_by_name(branch) is None:
        return
    scan = table.scan(row_filter=_filter(keys)).use_ref(branch)
    for task in scan.plan_files():
        rows = read(table, task)
        remaining = without(rows, keys)
        if len(remaining) < len(rows):
            yield task.file, remaining


def without(rows: pa.Table, keys: pa.Table) -> pa.Table:
    """Return the rows whose columns named as those of ``keys`` do not equal one of its rows."""
    names = keys.column_names
    wanted = pa.schema([rows.schema.field(name).remove_metadata().with_nullable(True) for name in names])
    numbered = rows.select(names).cast(wanted).append_column(_ROW, pa.array(range(len(rows)), pa.int64()))
    kept = numbered.join(keys.cast(wanted), keys=names, join_type="left anti")  # of the keys only: joins take no nested columns
    return rows.take(kept.column(_ROW).combine_chunks().sort())


def _filter(keys: pa.Table) -> BooleanExpression:
    """Return a condition that all rows of the keys meet, by which data files are skipped."""
    found: BooleanExpression = AlwaysTrue()
    for name in keys.column_names:
        column = keys.column(name)
        if not (pa.types.is_integer(column.type) or pa.types.is_string(column.type) or pa.types.is_date(column.type)):
            continue
        if len(keys) <= _IN_LIMIT:
            found = And(found, _new.In(name, set(column.to_pylist())))
        else:
            ends: Any = pc.min_max(column).as_py()
            found = And(found, And(_new.GreaterThanOrEqual(name, ends["min"]), _new.LessThanOrEqual(name, ends["max"])))
    return found
