"""Connectors run without Kafka and Spark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sluiceway.api import SinkRecord, TopicPartition
from sluiceway.connectors.file.sink import FileStreamSinkConnector
from sluiceway.connectors.file.source import FileStreamSourceConnector
from sluiceway.data import STRING_SCHEMA
from sluiceway.testing import ContractError, MemoryOffsets, MemorySinkContext, run_sink, run_source


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "lines.txt"
    file.write_text("one\ntwo\nthree\n")
    return file


def test_a_source_runs_until_it_has_the_records_and_resumes_after_them(file: Path) -> None:
    config, offsets = {"file": str(file), "topic": "t"}, MemoryOffsets()
    assert [record.value for record in run_source(FileStreamSourceConnector, config, records=2, offsets=offsets)] == [
        "one",
        "two",
    ]
    assert offsets.all() == [({"filename": str(file)}, {"position": 8})]
    assert [record.value for record in run_source(FileStreamSourceConnector, config, offsets=offsets)] == ["three"]


def test_too_few_records_are_an_assertion_error(file: Path) -> None:
    config = {"file": str(file), "topic": "t"}
    with pytest.raises(ContractError, match=r"FileStreamSourceConnector: returned 3 of 4 records within 0.1 s"):
        run_source(FileStreamSourceConnector, config, records=4, seconds=0.1)


def test_run_sink_returns_the_committed_offsets(tmp_path: Path) -> None:
    records = [SinkRecord("t", partition, 7, f"v{partition}", STRING_SCHEMA) for partition in range(3)]
    run = run_sink(FileStreamSinkConnector, {"file": str(tmp_path / "out.txt")}, records, tasks_max=2)
    assert (tmp_path / "out.txt").read_text().splitlines() == ["v0", "v2", "v1"]
    assert run.committed == {TopicPartition("t", partition): 8 for partition in range(3)}
    assert run.reported == []


def test_offsets_pass_through_json_and_partitions_compare_by_content() -> None:
    offsets = MemoryOffsets([({"b": 1, "a": 2}, {"at": (1, 2)})])
    assert offsets.offset({"a": 2, "b": 1}) == {"at": [1, 2]}
    assert offsets.offsets([{"a": 3}, {"a": 2, "b": 1}]) == [None, {"at": [1, 2]}]
    with pytest.raises(TypeError):
        offsets.store({"a": 1}, {"at": object()})
    offsets.store({"a": 2, "b": 1}, None)
    assert len(offsets) == 0


def test_a_sink_context_records_the_tasks_calls() -> None:
    here, there = TopicPartition("t", 0), TopicPartition("t", 1)
    context = MemorySinkContext({"a": "b"}, [here, there])
    context.offset({here: 5})
    context.timeout(100)
    context.pause(here, there)
    context.resume(here)
    context.request_commit()
    record, error = SinkRecord("t", 0, 0, None), ValueError("bad")
    assert context.errant_record_reporter is not None
    context.errant_record_reporter.report(record, error)
    assert (context.rewinds, context.timeouts, context.paused) == ({here: 5}, [100], {there})
    assert context.commit_requested
    assert context.reported == [(record, error)]
    assert MemorySinkContext(reports=False).errant_record_reporter is None


def test_the_package_itself_does_not_need_pytest() -> None:
    code = "import sys; import sluiceway, sluiceway.api, sluiceway.discovery; print('pytest' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
