"""RecordIsTombstone: true for records without a value."""

from __future__ import annotations

from sluiceway.api import Predicate
from sluiceway.api.columns import ColumnPredicate
from sluiceway.api.transform import ConnectRecord
from sluiceway.data import Schema


class RecordIsTombstone(Predicate):
    """True for tombstones, records whose value is null."""

    java_class = "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone"

    def test(self, record: ConnectRecord) -> bool:
        return record.value is None

    def column_predicate(self, key_schema: Schema | None, value_schema: Schema | None) -> ColumnPredicate | None:
        from sluiceway.transforms.columns.predicates import tombstones

        return tombstones
