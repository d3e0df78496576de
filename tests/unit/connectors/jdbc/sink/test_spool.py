"""Records that one transaction writes instead of an interval's rows."""

from __future__ import annotations

from sluiceway.api import SinkRecord
from sluiceway.connectors.jdbc.sink.task import RecordSpool


def _records(partition: int, first: int, last: int) -> list[SinkRecord]:
    return [SinkRecord("t", partition, offset, str(offset)) for offset in range(first, last)]


def test_records_that_are_put_again_are_kept_once_until_they_are_forgotten() -> None:
    spool = RecordSpool()
    spool.add(_records(0, 5, 8))
    spool.add(_records(1, 0, 2))
    spool.add(_records(0, 5, 10))  # after a rebalance
    found = [(each.kafka_partition, each.kafka_offset) for batch in spool.batches() for each in batch]
    assert found == [(0, 5), (0, 6), (0, 7), (1, 0), (1, 1), (0, 8), (0, 9)]
    assert sum(len(batch) for batch in spool.batches()) == 7, "they can be read again"
    spool.clear()
    assert list(spool.batches()) == []
    spool.add(_records(0, 5, 6))
    assert [len(batch) for batch in spool.batches()] == [1]
    spool.close()
