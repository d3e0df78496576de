from __future__ import annotations

from typing import Any

import pytest

from sluiceway.api import SinkRecord
from sluiceway.data import INT32_SCHEMA
from sluiceway.transforms.predicates.record_is_tombstone import RecordIsTombstone


def record(value: Any = 1, topic: str = "orders", **more: Any) -> SinkRecord:
    return SinkRecord(topic, 0, 0, value, **more)


@pytest.mark.parametrize(
    ("value", "schema", "expected"), [(None, None, True), (None, INT32_SCHEMA, True), (0, None, False), ("", None, False)]
)
def test_a_tombstone_is_a_record_without_value(value: Any, schema: Any, expected: bool) -> None:
    assert RecordIsTombstone().test(record(value, value_schema=schema)) is expected
