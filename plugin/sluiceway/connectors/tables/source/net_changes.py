"""Finds the rows that a commit changed among the rows before and after it. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

CHANGE = "_change_type"
"""The column and the header with the kind of a change, as in Delta's change data feed."""

DELETE, INSERT, BEFORE, AFTER = "delete", "insert", "update_preimage", "update_postimage"

_OLD, _NEW = "__old", "__new"


def net_changes(before: pa.Table, after: pa.Table, id_columns: Sequence[str], *, images: bool) -> pa.Table:
    """Return the deleted rows, then the changed and the new rows, with the column CHANGE in addition.

    Both tables have the same columns; id columns identify their rows. Rows that are in both are left out. With ``images``, a
    changed row comes twice, as it was before and as it is after.
    """
    old, new = _numbered(before, id_columns, _OLD), _numbered(after, id_columns, _NEW)
    pairs = old.join(new, keys=list(id_columns), join_type="full outer")
    is_old, is_new = pairs.column(_OLD).is_valid(), pairs.column(_NEW).is_valid()
    deleted = pairs.filter(pc.invert(is_new)).column(_OLD)
    inserted = pairs.filter(pc.invert(is_old)).column(_NEW)
    both = pairs.filter(pc.and_(is_old, is_new)).sort_by(_NEW)
    both = both.filter(_differ(before.take(both.column(_OLD)), after.take(both.column(_NEW))))
    found = [_marked(before.take(_sorted(deleted)), DELETE)]
    if images:
        found.append(_images(before.take(both.column(_OLD)), after.take(both.column(_NEW))))
    else:
        found.append(_marked(after.take(both.column(_NEW)), AFTER))
    return pa.concat_tables([*found, _marked(after.take(_sorted(inserted)), INSERT)])


def _numbered(rows: pa.Table, id_columns: Sequence[str], name: str) -> pa.Table:
    keys = rows.select(list(id_columns))
    optional = keys.cast(pa.schema([field.remove_metadata().with_nullable(True) for field in keys.schema]))
    return optional.append_column(name, pa.array(range(len(rows)), pa.int64()))


def _sorted(numbers: Any) -> Any:
    return numbers.take(pc.sort_indices(numbers))


def _marked(rows: pa.Table, change: str) -> pa.Table:
    return rows.append_column(CHANGE, pa.array([change] * len(rows), pa.string()))


def _images(before: pa.Table, after: pa.Table) -> pa.Table:
    """Return the rows before and after in turn."""
    order = [index for number in range(len(after)) for index in (number, len(after) + number)]
    return pa.concat_tables([_marked(before, BEFORE), _marked(after, AFTER)]).take(pa.array(order, pa.int64()))


def _differ(before: pa.Table, after: pa.Table) -> Any:
    """Return for each pair of rows whether they differ. Null equals null, and NaN equals NaN."""
    found: Any = pa.array([False] * len(after), pa.bool_())
    for name in after.column_names:
        found = pc.or_(found, _columns_differ(before.column(name), after.column(name)))
    return found


def _columns_differ(old: Any, new: Any) -> Any:
    if pa.types.is_nested(new.type) or isinstance(new.type, pa.BaseExtensionType):  # Arrow does not compare these
        pairs = zip(old.to_pylist(), new.to_pylist(), strict=True)
        return pa.array([repr(one) != repr(other) for one, other in pairs], pa.bool_())
    nulls = pc.xor(old.is_null(), new.is_null())
    values = pc.fill_null(pc.not_equal(old, new), False)
    if pa.types.is_floating(new.type):
        values = pc.and_not(values, pc.fill_null(pc.and_(pc.is_nan(old), pc.is_nan(new)), False))
    return pc.or_(nulls, values)
