from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sluiceway.api import SinkRecord, TopicPartition
from sluiceway.connectors.verifiable import results
from sluiceway.connectors.verifiable.checker import check
from sluiceway.connectors.verifiable.results import ResultFile, from_file, results_in
from sluiceway.connectors.verifiable.sink import VerifiableSinkConnector, VerifiableSinkTask
from sluiceway.errors import ConfigError, ConnectError, DataError

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Reporter:
    def __init__(self) -> None:
        self.reported: list[int] = []

    def report(self, record: SinkRecord, error: BaseException) -> None:
        assert isinstance(error, DataError)
        self.reported.append(record.kafka_offset)


class Context:
    def __init__(self, reporter: Reporter | None = None) -> None:
        self.errant_record_reporter = reporter
        self.rewound: dict[TopicPartition, int] = {}

    def offset(self, offsets: dict[TopicPartition, int]) -> None:
        self.rewound.update(offsets)


def started(file: Path | None, reporter: Reporter | None = None, **config: str) -> VerifiableSinkTask:
    task = VerifiableSinkTask()
    task.initialize(Context(reporter))  # type: ignore[arg-type]
    task.start({"name": "n", "id": "1", **({"file": str(file)} if file else {}), **config})
    return task


def record(number: int, *, partition: int = 0, value: Any = None) -> SinkRecord:
    return SinkRecord("t", partition, 100 + number, number if value is None else value, key=7)


def test_results_are_in_the_file_after_the_flush_and_not_before(tmp_path: Path) -> None:
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


def test_only_partitions_that_are_flushed_are_written_and_those_given_up_are_forgotten(tmp_path: Path) -> None:
    task = started(tmp_path / "out")
    task.put([record(0), record(1, partition=1)])
    task.flush({P0: 101})
    task.close([P1])
    task.flush({P0: 101, P1: 102})
    assert [result["seqno"] for result in results_in(tmp_path / "out")] == [0]


def test_a_transform_that_renames_the_topic_does_not_change_the_place(tmp_path: Path) -> None:
    task = started(tmp_path / "out")
    task.put([record(0).new_record(topic="other")])
    task.flush({P0: 101})
    assert [result["topic"] for result in results_in(tmp_path / "out")] == ["t"]


def test_another_kind_of_record_fails_the_batch_and_nothing_of_it_is_kept(tmp_path: Path) -> None:
    task = started(tmp_path / "out")
    with pytest.raises(DataError, match="t-0@101: Not a record of a verifiable source"):
        task.put([record(0), record(1, value="what")])
    task.flush({P0: 102})
    assert list(results_in(tmp_path / "out")) == []


def test_another_kind_of_record_is_reported_where_there_is_a_place_for_it(tmp_path: Path) -> None:
    reporter = Reporter()
    task = started(tmp_path / "out", reporter)
    task.put([record(0), record(1, value="what"), record(2)])
    task.flush({P0: 103})
    assert reporter.reported == [101]
    assert [result["seqno"] for result in results_in(tmp_path / "out")] == [0, 2]


def test_without_a_file_results_are_printed_at_arrival_and_at_the_flush(capsys: pytest.CaptureFixture[str]) -> None:
    task = started(None)
    task.put([record(5)])
    arrived = json.loads(capsys.readouterr().out)
    task.flush({P0: 106})
    flushed = json.loads(capsys.readouterr().out)
    assert (arrived["seqno"], "flushed" in arrived, flushed["flushed"]) == (5, False, True)


def test_offsets_from_the_file_rewind_to_behind_what_is_written(tmp_path: Path) -> None:
    first = started(tmp_path / "out")
    first.put([record(3), record(2), record(9, partition=1)])
    first.flush({P0: 104, P1: 110})
    second = started(tmp_path / "out", **{"offsets.from.file": "true"})
    second.open([P0, TopicPartition("t", 5)])
    assert second.context.rewound == {P0: 104}  # type: ignore[attr-defined]
    third = started(tmp_path / "out")
    third.open([P0])
    assert third.context.rewound == {}  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match="needs file"):
        VerifiableSinkConnector().start({"offsets.from.file": "true"})


def test_half_a_line_of_a_killed_writer_is_no_result_and_spoils_no_other(tmp_path: Path) -> None:
    (tmp_path / "out").write_text('{"task":1,"seqno":0,"topic":"t","partition":0}\n{"task":1,"se')
    file = ResultFile(tmp_path / "out")
    file.append([{"task": 1, "seqno": 1, "topic": "t", "partition": 0}])
    assert [seen.seqno for seen in from_file(tmp_path / "out")] == [0, 1]


def test_a_full_disk_takes_all_of_a_flush_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = started(tmp_path / "out")
    task.put([record(0)])
    task.flush({P0: 101})
    before = (tmp_path / "out").read_bytes()
    write, writes = results.os.write, []

    def full(descriptor: int, data: bytes) -> int:
        writes.append(len(data))
        if len(writes) > 1:
            raise OSError(28, "No space left on device")
        return write(descriptor, bytes(data)[:10])

    task.put([record(1), record(2)])
    with monkeypatch.context() as patched:
        patched.setattr(results.os, "write", full)
        with pytest.raises(ConnectError, match="No space left on device"):
            task.flush({P0: 103})
    assert len(writes) == 2
    assert (tmp_path / "out").read_bytes() == before


def test_a_file_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConnectError, match=r"Couldn't open the result file '.*/no/out': No such file or directory"):
        started(tmp_path / "no" / "out")
