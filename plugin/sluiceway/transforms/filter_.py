"""Filter: drops records, usually those that match a predicate."""

from __future__ import annotations

from collections.abc import Sequence

from sluiceway.api import Transform
from sluiceway.api.columns import ColumnTransform
from sluiceway.api.transform import R
from sluiceway.data import Schema


class Filter(Transform):
    """Drops all records, or with a predicate those that match it."""

    java_class = "org.apache.kafka.connect.transforms.Filter"

    def apply(self, record: R) -> R | Sequence[R] | None:
        return None

    def column_transform(self, key_schema: Schema | None, value_schema: Schema | None) -> ColumnTransform | None:
        from sluiceway.columns.batches import sliced

        return lambda batch: sliced(batch, 0, 0)
