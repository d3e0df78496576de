"""RecordIsTombstone: true for records without a value."""

from __future__ import annotations

from sluiceway.api import Predicate
from sluiceway.api.transform import ConnectRecord


class RecordIsTombstone(Predicate):
    """True for tombstones, records whose value is null."""

    java_class = "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone"

    def test(self, record: ConnectRecord) -> bool:
        return record.value is None
