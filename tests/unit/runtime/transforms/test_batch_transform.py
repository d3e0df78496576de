from __future__ import annotations

from typing import Any

from sluiceway.api import Transform
from sluiceway.errors import RetriableError
from sluiceway.runtime.errors.errant_record_reporter import consumer_record_of
from sluiceway.runtime.errors.retry_with_tolerance import RetryWithToleranceOperator
from sluiceway.runtime.transforms.batch_transform import transform_batch
from unit.runtime.chains import chain, sink, values


class NotYet(Transform):
    """Raises RetriableError ``left`` times for a value, then returns two records for each."""

    left: dict[Any, int] = {}

    def apply(self, record: Any) -> Any:
        if NotYet.left.get(record.value):
            NotYet.left[record.value] -= 1
            raise RetriableError("not yet")
        return [record, record.new_record(value=f"{record.value}+")]


def test_records_of_successful_retries_keep_their_order() -> None:
    config = {"errors.retry.timeout": "-1", "errors.tolerance": "all"}
    tolerance = RetryWithToleranceOperator(config, wait=lambda _seconds: None)
    NotYet.left = {"a": 7, "c": 5}
    records = [sink(value) for value in ("a", "b", "c", "d")]
    made = transform_batch(chain({"type": f"{__name__}.NotYet"}), records, tolerance, describe=str, original=consumer_record_of)
    assert values(made.records) == ["a", "a+", "b", "b+", "c", "c+", "d", "d+"]
    assert (made.origins, made.failure, tolerance.skipped) == ([0, 0, 1, 1, 2, 2, 3, 3], None, 0)
    assert tolerance.counts.retries >= 2
