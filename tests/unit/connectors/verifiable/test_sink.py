from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sluiceway.api import SinkRecord, TopicPartition
from sluiceway.connectors.verifiable.checker import check
from sluiceway.connectors.verifiable.results import from_file, results_in
from sluiceway.connectors.verifiable.sink import VerifiableSinkConnector, VerifiableSinkTask
from sluiceway.errors import ConfigError, DataError
from sluiceway.testing import MemorySinkContext

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


def started(file: Path | None, *, reports: bool = False, **config: str) -> VerifiableSinkTask:
    task = VerifiableSinkTask()
    task.initialize(MemorySinkContext(reports=reports))
    options = {key.replace("_", "."): value for key, value in config.items()}
    task.start({"name": "n", "id": "1", **({"file": str(file)} if file else {}), **options})
    return task


def context_of(task: VerifiableSinkTask) -> MemorySinkContext:
    assert isinstance(task.context, MemorySinkContext)
    return task.context


def record(number: int, *, partition: int = 0, value: Any = None) -> SinkRecord:
    return SinkRecord("t", partition, 100 + number, number if value is None else value, key=7)


def test_results_are_in_the_file_only_after_the_flush(tmp_path: Path) -> None:
    task = started(tmp_path / "out")
    task.put([record(0), record(1)])
    assert list(results_in(tmp_path / "out")) == []
    task.flush({P0: 102})
    first, second = results_in(tmp_path / "out")
    assert {**first, "time_ms": 0} == {
        "name": "n",
        "task": 7,
        "sinkTask": 1,
        "topic": "t",
        "time_ms": 0,
        "seqno": 0,
        "partition": 0,
        "offset": 100,
        "flushed": True,
    }
    assert second["seqno"] == 1
    task.flush({P0: 102})
    assert check(from_file(tmp_path / "out")).exactly_once


def test_only_flushed_partitions_are_written_and_closed_ones_are_dropped(tmp_path: Path) -> None:
    task = started(tmp_path / "out")
    task.put([record(0), record(1, partition=1)])
    task.flush({P0: 101})
    task.close([P1])
    task.flush({P0: 101, P1: 102})
    assert [result["seqno"] for result in results_in(tmp_path / "out")] == [0]


def test_results_have_the_original_topic_after_a_transform_renamed_it(tmp_path: Path) -> None:
    task = started(tmp_path / "out")
    task.put([record(0).new_record(topic="other")])
    task.flush({P0: 101})
    assert [result["topic"] for result in results_in(tmp_path / "out")] == ["t"]


def test_a_foreign_record_fails_the_batch_and_no_result_of_it_is_kept(tmp_path: Path) -> None:
    task = started(tmp_path / "out")
    with pytest.raises(DataError, match="t-0@101: Not a record of a verifiable source"):
        task.put([record(0), record(1, value="what")])
    task.flush({P0: 102})
    assert list(results_in(tmp_path / "out")) == []


def test_a_foreign_record_is_reported_to_the_errant_record_reporter(tmp_path: Path) -> None:
    task = started(tmp_path / "out", reports=True)
    task.put([record(0), record(1, value="what"), record(2)])
    task.flush({P0: 103})
    [(reported, error)] = context_of(task).reported
    assert (reported.kafka_offset, type(error)) == (101, DataError)
    assert [result["seqno"] for result in results_in(tmp_path / "out")] == [0, 2]


def test_without_a_file_results_are_printed_on_arrival_and_at_the_flush(capsys: pytest.CaptureFixture[str]) -> None:
    task = started(None)
    task.put([record(5)])
    arrived = json.loads(capsys.readouterr().out)
    task.flush({P0: 106})
    flushed = json.loads(capsys.readouterr().out)
    assert (arrived["seqno"], "flushed" in arrived, flushed["flushed"]) == (5, False, True)


def test_offsets_from_the_file_rewind_to_after_the_written_records(tmp_path: Path) -> None:
    first = started(tmp_path / "out")
    first.put([record(3), record(2), record(9, partition=1)])
    first.flush({P0: 104, P1: 110})
    second = started(tmp_path / "out", offsets_from_file="true")
    second.open([P0, TopicPartition("t", 5)])
    assert context_of(second).rewinds == {P0: 104}
    third = started(tmp_path / "out")
    third.open([P0])
    assert context_of(third).rewinds == {}
    with pytest.raises(ConfigError, match="needs file"):
        VerifiableSinkConnector().start({"offsets.from.file": "true"})
