from __future__ import annotations

import time
from pathlib import Path

import pytest

from sluiceway.api import TopicPartition
from sluiceway.connectors.verifiable.results import results_in
from sluiceway.errors import DataError
from sluiceway.testing import MemorySinkContext
from unit.connectors.mock.tasks import records, sink

P0 = TopicPartition("t", 0)


def test_without_a_reporter_a_bad_record_fails_the_sink(tmp_path: Path) -> None:
    task = sink(bad_records_share="0.5", file=str(tmp_path / "out"))
    with pytest.raises(DataError, match="The mock sink refuses t-0@1"):
        task.put(records(0, 4))


def test_a_sink_reports_its_share_and_takes_the_other_records(tmp_path: Path) -> None:
    task = sink(reports=True, bad_records_share="0.5", file=str(tmp_path / "out"))
    task.put(records(0, 4))
    task.flush({P0: 4})
    assert isinstance(task.context, MemorySinkContext)
    assert [record.kafka_offset for record, _ in task.context.reported] == [1, 3]
    assert [result["seqno"] for result in results_in(tmp_path / "out")] == [0, 2]


def test_put_blocks_for_the_time_of_its_batch() -> None:
    task = sink(throughput="200")
    started = time.monotonic()
    task.put(records(0, 20))
    assert time.monotonic() - started >= 0.1
