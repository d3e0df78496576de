from __future__ import annotations

import logging
import os
import sys
import threading
from pathlib import Path
from typing import IO, Any

import pytest

from sluiceway.api import Offset, SourceColumns, SourceRecord
from sluiceway.config.definition import ConfigDef
from sluiceway.connectors.file.changes import FileWatch
from sluiceway.connectors.file.source import FileStreamSourceConnector, FileStreamSourceTask
from sluiceway.connectors.file.tail import FileTail
from sluiceway.data import STRING_SCHEMA
from sluiceway.errors import ConfigError, ConnectError
from sluiceway.testing import MemoryOffsets, MemorySourceContext
from support.eventually import LIMIT, NEVER


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "test.txt"


def start(file: Path, position: object = None, **config: str) -> FileStreamSourceTask:
    offsets = MemoryOffsets([] if position is None else [({"filename": str(file)}, {"position": position})])
    task = FileStreamSourceTask()
    properties = {"file": str(file), "topic": "t", **{key.replace("_", "."): value for key, value in config.items()}}
    task.initialize(MemorySourceContext(properties, offsets))
    task.start(properties)
    return task


def values(records: list[SourceRecord] | None) -> list[str]:
    return [record.value for record in records or []]


def poll_all(task: FileStreamSourceTask) -> list[str]:
    found: list[str] = []
    while records := task.poll():
        found += values(list(records))
    return found


def position(records: list[SourceRecord]) -> Offset | None:
    return records[-1].source_offset


def test_each_line_is_a_record_with_the_position_after_it(file: Path) -> None:
    file.write_text("foo\nbar\n")
    first, second = start(file).poll() or []
    assert (first.value, first.value_schema, first.key, first.topic) == ("foo", STRING_SCHEMA, None, "t")
    assert (first.source_partition, first.source_offset) == ({"filename": str(file)}, {"position": 4})
    assert second.source_offset == {"position": 8}


def test_reading_resumes_at_the_stored_position_in_bytes(file: Path) -> None:
    file.write_text("üüüüü\nzwei\n", encoding="utf-8")
    assert poll_all(start(file, position=11)) == ["zwei"]


def test_lines_left_over_from_a_full_batch_need_no_new_data(file: Path) -> None:
    file.write_text("".join(f"{number}\n" for number in range(7)))
    task = start(file, batch_size="2")
    assert [values(list(task.poll() or [])) for _ in range(4)] == [["0", "1"], ["2", "3"], ["4", "5"], ["6"]]
    assert task.poll() is None


@pytest.mark.parametrize("size", ["0", "-1", "1"])
def test_a_batch_size_below_one_means_one(file: Path, size: str) -> None:
    file.write_text("a\nb\n")
    assert values(list(start(file, batch_size=size).poll() or [])) == ["a"]


def test_appended_lines_are_read_and_an_incomplete_line_is_held_back(file: Path) -> None:
    file.write_text("a\nb")
    task = start(file)
    assert poll_all(task) == ["a"]
    with file.open("a") as out:
        out.write("c\nd\n")
    assert poll_all(task) == ["bc", "d"]


def test_a_line_of_three_megabytes_is_one_record(file: Path) -> None:
    line = "x" * 3_000_000
    file.write_text(f"{line}\nend\n")
    assert poll_all(start(file)) == [line, "end"]


def test_a_missing_file_is_waited_for_with_a_warning(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    task = start(file)
    with caplog.at_level(logging.WARNING):
        assert task.poll() is None
    assert f"Couldn't find file {file} for FileStreamSourceTask, sleeping to wait for it to be created" in caplog.messages
    file.write_text("late\n")
    assert poll_all(task) == ["late"]


def test_a_directory_at_the_path_is_waited_for_to_become_a_file(file: Path) -> None:
    file.mkdir()
    task = start(file)
    assert task.poll() is None
    file.rmdir()
    file.write_text("a\n")
    assert poll_all(task) == ["a"]


def test_a_truncated_file_is_read_again_from_the_start(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    file.write_text("one\ntwo\nthree\n")
    task = start(file)
    assert poll_all(task) == ["one", "two", "three"]
    with file.open("r+") as out:
        out.truncate(0)
        out.write("new\n")
    records = list(task.poll() or [])
    assert (values(records), position(records)) == (["new"], {"position": 4})
    assert "was truncated below position 14" in caplog.text


def test_a_file_shorter_than_the_stored_position_is_read_from_the_start(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    file.write_text("new\n")
    assert poll_all(start(file, position=300064)) == ["new"]
    assert "shorter than the stored position 300064" in caplog.text


def test_a_replaced_file_is_read_to_its_end_before_the_new_file(file: Path) -> None:
    file.write_text("old 1\n")
    task = start(file)
    assert poll_all(task) == ["old 1"]
    with file.open("a") as out:
        out.write("old 2\nunfinished")
    file.rename(file.with_suffix(".1"))
    file.write_text("new\n")
    assert poll_all(task) == ["old 2", "unfinished", "new"]


def test_lines_written_just_before_a_file_is_replaced_are_not_missed(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text("old\n")
    task = start(file)
    assert poll_all(task) == ["old"]
    read = FileTail._chunk

    def read_and_be_overtaken(tail: FileTail, open_file: IO[bytes]) -> bytes:
        chunk = read(tail, open_file)
        if not chunk and not file.with_suffix(".1").exists():
            with file.open("a") as out:
                out.write("late\n")
            file.rename(file.with_suffix(".1"))
            file.write_text("new\n")
        return chunk

    monkeypatch.setattr(FileTail, "_chunk", read_and_be_overtaken)
    assert poll_all(task) == ["late", "new"]


def test_after_a_replaced_files_incomplete_line_the_position_is_zero(file: Path) -> None:
    file.write_text("a\nunfinished")
    task = start(file)
    assert poll_all(task) == ["a"]
    file.unlink()
    file.write_text("new\n")
    records = list(task.poll() or [])
    assert (values(records), position(records)) == (["unfinished"], {"position": 0})


def test_a_deleted_file_is_no_error(file: Path) -> None:
    file.write_text("a\n")
    task = start(file)
    poll_all(task)
    file.unlink()
    assert task.poll() is None


def test_the_lag_is_the_bytes_that_were_not_read(file: Path) -> None:
    file.write_bytes(b"one\ntwo\n")
    task = start(file, 4)
    lag = task.source_lag()
    assert (lag.seconds, lag.bytes) == (None, 4), "nothing is read before the first poll"
    assert poll_all(task) == ["two"]
    assert task.source_lag() == (0.0, 0.0)
    with file.open("ab") as appended:
        appended.write(b"three\nfour")
    seconds, left = task.source_lag()
    assert left == 10
    assert seconds is not None
    assert seconds > 0
    assert poll_all(task) == ["three"]
    assert task.source_lag() == (0.0, 0.0), "a line that is not complete is not missing"
    file.unlink()
    assert task.source_lag() == (0.0, 0.0)


def test_an_invalid_stored_position_is_an_error(file: Path) -> None:
    with pytest.raises(ConnectError, match="has the position 'x', not a number of bytes"):
        start(file, position="x")


def test_without_a_file_lines_come_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    readable, writable = os.pipe()
    with os.fdopen(readable) as stdin, os.fdopen(writable, "w") as out:
        monkeypatch.setattr("sys.stdin", stdin)
        task = FileStreamSourceTask()
        task.initialize(MemorySourceContext())
        task.start({"topic": "t"})
        assert task.poll() is None
        out.write("typed\n")
        out.flush()
        (record,) = task.poll() or []
        assert (record.value, record.source_partition, record.source_offset) == ("typed", {"filename": None}, {"position": None})


def test_a_missing_topic_is_refused_with_connects_message() -> None:
    with pytest.raises(ConfigError, match='Missing required configuration "topic" which has no default value'):
        FileStreamSourceConnector().start({"file": "x"})


def test_there_is_always_one_task() -> None:
    connector = FileStreamSourceConnector()
    connector.start({"file": "x", "topic": "t"})
    assert connector.task_configs(5) == [{"file": "x", "topic": "t"}]
    assert isinstance(connector.config_def(), ConfigDef)


def both_forms(file: Path, batch_size: int) -> tuple[list[Any], list[Any], int]:
    """Return the lines and offsets of ``poll`` and of ``poll_columns``, and how many batches of the latter were columns."""
    rows: list[Any] = []
    mixed: list[Any] = []
    columns = 0
    task = start(file, batch_size=str(batch_size))
    while records := task.poll():
        assert len(records) <= batch_size
        rows += [(record.value, record.source_offset) for record in records]
    task = start(file, batch_size=str(batch_size))
    while (batch := task.poll_columns()) is not None:
        assert len(batch) <= batch_size
        if isinstance(batch, SourceColumns):
            columns += 1
            records = batch.records()
            assert batch.batch.value.values is not None
            assert batch.batch.value.values.to_pylist() == [record.value for record in records]
            assert (batch.source_offset, batch.source_partition) == (records[-1].source_offset, {"filename": str(file)})
        else:
            records = batch
        mixed += [(record.value, record.source_offset) for record in records]
    return rows, mixed, columns


@pytest.mark.parametrize("batch_size", [300, 2000, 100_000])
def test_columns_hold_the_lines_and_offsets_that_records_hold(file: Path, batch_size: int) -> None:
    text = "".join(f"Zeile {number} äöü{'x' * (number % 40)}\n" for number in range(20_000))
    file.write_text(text + "the last one")
    rows, mixed, columns = both_forms(file, batch_size)
    assert len(rows) == 20_000
    assert mixed == rows
    assert columns > 1


@pytest.mark.parametrize("odd", [b"\r\n", b"\xff\n", b"\xed\xa0\x80\n", b"\n\n\n"])
def test_lines_that_columns_cannot_hold_are_records(file: Path, odd: bytes) -> None:
    file.write_bytes(b"".join(b"line %d of the file\n" % number for number in range(20_000)) + b"odd " + odd)
    rows, mixed, columns = both_forms(file, 2000)
    assert mixed == rows
    assert columns


class PatientContext(MemorySourceContext):
    """A context whose waits end only with ``wake``, up to a long time; counts them."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float] = []
        self.began = threading.Event()
        self._event = threading.Event()

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.began.set()
        self._event.wait(NEVER)
        self._event.clear()

    def wake(self) -> None:
        self._event.set()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="inotify is Linux's")
def test_a_line_ends_the_wait_of_a_poll(file: Path) -> None:
    file.touch()  # its creation would end a wait, too
    task, context, found = FileStreamSourceTask(), PatientContext(), []
    task.initialize(context)
    task.start({"file": str(file), "topic": "t"})
    thread = threading.Thread(target=lambda: found.append(task.poll()))
    thread.start()
    assert context.began.wait(LIMIT)
    with file.open("a") as out:
        out.write("late\n")
    thread.join(LIMIT)
    assert values(list(found[0] or [])) == ["late"]
    assert context.waits == [1.0], "one long wait instead of a look every 50 ms"
    task.stop()


def test_a_line_of_a_file_whose_changes_are_not_announced_is_found_soon(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FileWatch, "arm", lambda _self: False)
    task = start(file)
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            file.write_text("late\n")

    monkeypatch.setattr(task.context, "wait", wait)
    assert values(list(task.poll() or [])) == ["late"]
    assert waits == [0.05] * 3


def test_a_position_in_the_middle_of_a_line_is_that_of_another_file(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    file.write_text("another file\nnext\n")
    task = start(file, 7)
    assert poll_all(task) == [" file", "next"]
    assert task.metrics() == {"generations-lost": 1}
    assert "up to byte 7, where this one is in the middle of a line" in caplog.text
    assert start(file, 13).metrics() == {"generations-lost": 0}


def test_generations_that_were_passed_over_are_counted(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    file.write_text("one\n")
    os.utime(file, (1, 1))
    task = start(file)
    assert poll_all(task) == ["one"]
    file.rename(file.with_name("test.txt.3"))
    for number in (2, 1):
        file.with_name(f"test.txt.{number}").write_text("lost\n")
    file.write_text("four\n")
    assert poll_all(task) == ["four"]
    assert task.metrics() == {"generations-lost": 2}
    assert "not read: test.txt.2, test.txt.1" in caplog.text
    file.write_text("")
    assert poll_all(task) == []
    assert task.metrics() == {"generations-lost": 3}
