from __future__ import annotations

from typing import Any

import pytest

from sluiceway.api import SinkRecord
from sluiceway.transforms.predicates.timestamp_between import TimestampBetween


def record(value: Any = 1, topic: str = "orders", **more: Any) -> SinkRecord:
    return SinkRecord(topic, 0, 0, value, **more)


@pytest.mark.parametrize(("timestamp", "expected"), [(99, False), (100, True), (199, True), (200, False), (None, False)])
def test_a_time_range_includes_its_start_but_not_its_end(timestamp: int | None, expected: bool) -> None:
    predicate = TimestampBetween()
    predicate.configure({"from.ms": "100", "to.ms": "200"})
    assert predicate.test(record(timestamp=timestamp)) is expected
