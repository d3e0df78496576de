"""The task: files that are complete at some time, batches of several files, bad records, and files that were read."""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import json
import lzma
import os
import random
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sluiceway.api import SourceColumns
from sluiceway.config.intervals import Interval, IntervalRun
from sluiceway.connectors.folder import after_read, finished
from sluiceway.connectors.folder.connector import FolderSourceConnector
from sluiceway.connectors.folder.local_files import LocalStorage
from sluiceway.errors import ConnectError
from support.eventually import LIMIT
from support.folder_task import FolderTask

LONG_AGO = 1_600_000_000


class Runner(FolderTask):
    """A task that reads files, each once."""

    def __init__(self, **config: str) -> None:
        super().__init__(**{"mode": "files", **config})


def old(path: Path, data: bytes | str) -> Path:
    """Write a file that has not changed for long."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    os.utime(path, (LONG_AGO, LONG_AGO))
    return path


def test_files_of_a_folder_are_read_once(tmp_path: Path) -> None:
    for name in ("b", "a"):
        old(tmp_path / f"{name}.txt", f"{name}1\n{name}2")
    old(tmp_path / ".hidden", "no\n")
    old(tmp_path / "c.tmp", "no\n")
    old(tmp_path / "below" / "d.txt", "no\n")
    run = Runner(paths=str(tmp_path))
    assert sorted(run.run()) == ["a1", "a2", "b1", "b2"]
    assert {json.loads(each)["file"]: offset["done"] for each, offset in run.offsets.items()} == {
        str(tmp_path / "a.txt"): True,
        str(tmp_path / "b.txt"): True,
    }
    assert run.run() == []
    run.restart()
    assert run.run() == []
    old(tmp_path / "e.txt", "e1\n")
    assert run.run() == ["e1"]


def test_a_file_that_grows_is_complete_when_it_has_not_changed_for_a_while(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("one\ntw")
    run = Runner(paths=str(file), **{"stable.ms": "600000"})
    assert run.run() == ["one"]
    with file.open("a") as out:
        out.write("o\nthr")
    assert run.run() == ["two"]
    os.utime(file, (LONG_AGO, LONG_AGO))
    assert run.run() == ["thr"]
    assert run.offsets[json.dumps({"file": str(file)})]["done"] is True


def test_a_file_that_is_renamed_into_the_folder_is_complete_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo")
    assert Runner(paths=str(tmp_path), **{"complete.when": "renamed"}).run() == ["one", "two"]


def test_a_marker_makes_a_file_complete(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo")
    run = Runner(paths=str(tmp_path / "*"), **{"complete.when": "marker", "after.read": "delete"})
    assert run.run() == []
    (tmp_path / "a.txt.done").touch()
    assert run.run() == ["one", "two"]
    assert list(tmp_path.iterdir()) == []


def _zstd(data: bytes) -> bytes:
    half = len(data) // 2  # two frames, as of a file that was appended to
    return b"".join(pa.compress(part, "zstd", asbytes=True) for part in (data[:half], data[half:]))


def _zip(data: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("folder/", b"")
        archive.writestr("folder/a.txt", data)
    return packed.getvalue()


COMPRESS: list[tuple[str, Callable[[bytes], bytes]]] = [
    (".gz", gzip.compress),
    (".bz2", bz2.compress),
    (".xz", lzma.compress),
    (".zst", _zstd),
    (".zip", _zip),
]


@pytest.mark.parametrize("columnar", [True, False])
@pytest.mark.parametrize(("extension", "compress"), [("", bytes), *COMPRESS])
def test_a_restart_anywhere_repeats_and_loses_nothing(
    tmp_path: Path, extension: str, compress: Callable[[bytes], bytes], *, columnar: bool
) -> None:
    lines = [f"line {number} {'x' * (number % 70)}" for number in range(9000)]
    old(tmp_path / f"a.txt{extension}", compress("\n".join(lines).encode()))
    run, found, draw = Runner(paths=str(tmp_path), **{"batch.size": "700"}), [], random.Random(5)  # noqa: S311
    for _ in range(1000):
        records = run.poll(columnar=columnar)
        if not records:
            break
        taken = records[: draw.randrange(1, len(records) + 1)] if draw.random() < 0.5 else records
        found += [each.value for each in taken]
        run.take(taken)
        if len(taken) < len(records):
            run.restart()
    assert found == lines


def test_small_files_share_a_batch_and_large_ones_are_columns(tmp_path: Path) -> None:
    for number in range(50):
        old(tmp_path / f"small{number}", "one\n")
    run = Runner(paths=str(tmp_path))
    assert len(run.task.poll_columns() or ()) == 50
    old(tmp_path / "large", "line of some length\n" * 30_000)
    assert len(run.run()) == 30_000
    assert run.columnar >= 10


@pytest.mark.parametrize("after", ["keep", "move", "delete"])
def test_a_file_is_handled_only_when_its_last_record_is_stored(tmp_path: Path, after: str) -> None:
    file = old(tmp_path / "in" / "below" / "a.txt", "one\n")
    folder = {"after.read.folder": str(tmp_path / "out")} if after == "move" else {}
    run = Runner(paths=str(tmp_path / "in" / "**" / "*.txt"), **{"after.read": after}, **folder)
    assert run.task.poll_columns()
    assert file.exists()
    run.restart()  # nothing was stored
    assert run.run() == ["one"]
    assert file.exists() is (after == "keep")
    assert (tmp_path / "out" / "below" / "a.txt").exists() is (after == "move")


@pytest.mark.parametrize("after", ["move", "delete"])
def test_a_file_that_was_done_before_a_crash_is_handled_after_it(tmp_path: Path, after: str) -> None:
    file = old(tmp_path / "in" / "a.txt", "one\n")
    folder = {"after.read.folder": str(tmp_path / "out")} if after == "move" else {}
    run = Runner(paths=str(tmp_path / "in"), **{"after.read": after}, **folder)
    run.task.commit = lambda: None  # type: ignore[method-assign]  # the crash comes before
    assert run.run() == ["one"]
    assert file.exists()
    run.restart()
    assert run.run() == []
    assert not file.exists()


def test_a_moved_file_replaces_none(tmp_path: Path) -> None:
    run = Runner(paths=str(tmp_path / "in"), **{"after.read": "move", "after.read.folder": str(tmp_path / "out")})
    for text in ("one\n", "other\n"):
        old(tmp_path / "in" / "a.txt", text)
        run.run()
    assert sorted(each.read_text() for each in (tmp_path / "out").iterdir()) == ["one\n", "other\n"]
    assert (tmp_path / "out" / "a.txt").read_text() == "one\n"


def test_a_file_that_cannot_be_moved_is_said_and_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    old(tmp_path / "in" / "a.txt", "one\n")
    (tmp_path / "out").write_text("a file")
    run = Runner(paths=str(tmp_path / "in"), **{"after.read": "move", "after.read.folder": str(tmp_path / "out")})
    assert run.run() == ["one"]
    assert run.task.metrics()["files-unhandled"] == 1
    assert "a.txt was read, but not moved" in caplog.text
    assert (tmp_path / "in" / "a.txt").exists()


def test_a_file_that_could_not_be_moved_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old(tmp_path / "in" / "a.txt", "one\n")
    (tmp_path / "out").write_text("a file")
    run = Runner(paths=str(tmp_path / "in"), **{"after.read": "move", "after.read.folder": str(tmp_path / "out")})
    assert run.run() == ["one"]
    (tmp_path / "out").unlink()
    assert run.run() == []
    assert (tmp_path / "in" / "a.txt").exists(), "too early"
    monkeypatch.setattr(run.task._handling, "_try_again", dict.fromkeys(run.task._handling._try_again, 0.0))
    assert run.run() == []
    assert (tmp_path / "out" / "a.txt").read_text() == "one\n"
    assert run.task.metrics()["files-unhandled"] == 1
    assert not run.task._handling._try_again


def test_another_file_under_the_same_name_is_read(tmp_path: Path) -> None:
    file = old(tmp_path / "a.txt", "one\n")
    run = Runner(paths=str(tmp_path))
    assert run.run() == ["one"]
    file.unlink()
    old(file, "four\n")
    assert run.run() == ["four"]
    run.restart()
    old(file, "three\n")
    assert run.run() == ["three"]


@pytest.mark.parametrize("after", ["delete", "move"])
def test_a_file_that_came_meanwhile_under_the_same_name_is_read_before_it_is_handled(tmp_path: Path, after: str) -> None:
    file = old(tmp_path / "in" / "a.txt", "one\n")
    folder = {"after.read.folder": str(tmp_path / "out")} if after == "move" else {}
    run = Runner(paths=str(tmp_path / "in"), **{"after.read": after}, **folder)
    commit, run.task.commit = run.task.commit, lambda: None  # type: ignore[method-assign]
    assert run.run() == ["one"]
    other = old(tmp_path / "other", "three\n")
    other.rename(file)
    commit()
    assert file.exists()
    run.task.commit = commit  # type: ignore[method-assign]
    assert run.run() == ["three"]
    assert not file.exists()


def test_a_file_that_is_touched_is_not_read_again(tmp_path: Path) -> None:
    file = old(tmp_path / "a.txt", "one\n")
    run = Runner(paths=str(tmp_path))
    assert run.run() == ["one"]
    os.utime(file, (LONG_AGO + 9, LONG_AGO + 9))
    assert run.run() == []
    assert run.task.metrics()["files-finished"] == 2
    assert run.run() == []
    assert run.task.metrics()["files-finished"] == 2


def test_files_that_were_moved_below_the_pattern_are_not_read_again(tmp_path: Path) -> None:
    old(tmp_path / "a.txt", "one\n")
    run = Runner(paths=str(tmp_path / "**" / "*"), **{"after.read": "move", "after.read.folder": str(tmp_path / "done")})
    assert run.run() == ["one"]
    assert run.run() == []
    assert [each.name for each in (tmp_path / "done").iterdir()] == ["a.txt"]


def test_a_folder_that_cannot_be_read_does_not_keep_the_others_from_being_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "ab":
        old(tmp_path / name / "file", f"{name}\n")
    real = os.scandir

    def refuse(path: Any) -> Any:
        if str(path).endswith("/a"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", refuse)
    run = Runner(paths=str(tmp_path / "*" / "*"))
    assert run.run() == ["b"]
    assert caplog.text.count(f"{tmp_path}/a cannot be read") == 1


def test_what_is_added_to_a_file_that_was_done_is_read(tmp_path: Path) -> None:
    file = old(tmp_path / "a.txt", "one\n")
    run = Runner(paths=str(tmp_path))
    assert run.run() == ["one"]
    run.restart()
    with file.open("a") as out:
        out.write("two\n")
    os.utime(file, (LONG_AGO + 9, LONG_AGO + 9))
    assert run.run() == ["two"]


TOLERANT = {"errors.tolerance": "all"}
CSV = "id,name\n1,a\n2,b,c\n3,d\n"


def test_bad_rows_fail_the_task_by_default(tmp_path: Path) -> None:
    old(tmp_path / "a.csv", CSV)
    with pytest.raises(ConnectError, match=r"a\.csv at byte 12: 3 fields instead of 2: '2,b,c'"):
        Runner(paths=str(tmp_path), format="csv").run()


def test_bad_rows_are_reported_with_where_they_were(tmp_path: Path) -> None:
    file = old(tmp_path / "a.csv", CSV)
    run = Runner(paths=str(tmp_path), format="csv", **TOLERANT)
    assert [dict(each) for each in run.run()] == [{"id": "1", "name": "a"}, {"id": "3", "name": "d"}]
    ((bad, error),) = run.context.reported
    assert (bad.value, bad.source_partition) == (b"2,b,c\n", {"file": str(file)})
    assert (bad.source_offset or {})["position"] == 18
    assert str(error) == f"{file} at byte 12: 3 fields instead of 2: '2,b,c'"


def test_a_last_bad_row_does_not_keep_a_file_from_being_done(tmp_path: Path) -> None:
    file = old(tmp_path / "a.csv", "id,name\n1,a\n2\n")
    run = Runner(paths=str(tmp_path), format="csv", **{**TOLERANT, "after.read": "delete"})
    assert len(run.run()) == 1
    assert not file.exists()


@pytest.mark.parametrize("rows", [10, 100_000])
def test_a_quote_that_is_never_closed_makes_one_bad_record(tmp_path: Path, rows: int) -> None:
    old(tmp_path / "a.csv", 'id,name\n1,"x\n' + "2,b\n" * rows)
    run = Runner(paths=str(tmp_path), format="csv", **{**TOLERANT, "record.max.bytes": "262144"})
    assert [dict(each) for each in run.run()] == [{"id": "2", "name": "b"}] * rows
    assert len(run.context.reported) == 1


def test_a_line_of_too_many_bytes_is_cut(tmp_path: Path) -> None:
    old(tmp_path / "a.txt", "a\n" + "x" * 600_000 + "\nb\n")
    run = Runner(paths=str(tmp_path), **{**TOLERANT, "record.max.bytes": "262144"})
    assert run.run() == ["a", "b"]
    assert sum(len(record.value) for record, _ in run.context.reported) == 600_001


def test_a_damaged_file_is_bad_and_the_others_are_read(tmp_path: Path) -> None:
    old(tmp_path / "a.gz", gzip.compress(b"one\n" * 1000)[:-20])
    old(tmp_path / "b.txt", "two\n")
    run = Runner(paths=str(tmp_path), **TOLERANT)
    assert "two" in run.run()
    assert len(run.context.reported) == 1
    assert run.run() == []
    with pytest.raises(ConnectError, match=r"a\.gz.*cannot be decompressed"):
        Runner(paths=str(tmp_path)).run()


def test_an_archive_of_several_files_is_bad(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a.txt", "one\n")
        archive.writestr("b.txt", "two\n")
    os.utime(tmp_path / "a.zip", (LONG_AGO, LONG_AGO))
    with pytest.raises(ConnectError, match=r"a\.zip.*has 2 files, and only archives of one file"):
        Runner(paths=str(tmp_path)).run()


@pytest.mark.parametrize(("position", "byte"), [(4, 255), (-6, 127)])  # the version that is needed; the position of the directory
def test_a_damaged_archive_is_bad(tmp_path: Path, position: int, byte: int) -> None:
    data = bytearray(_zip(b"one\n" * 1000))
    data[data.rindex(b"PK\x01\x02") + 6 if position > 0 else len(data) + position] = byte
    file = tmp_path / "a.zip"
    file.write_bytes(data)
    os.utime(file, (LONG_AGO, LONG_AGO))
    with pytest.raises(ConnectError, match=r"a\.zip cannot be decompressed"):
        Runner(paths=str(tmp_path)).run()


def test_an_archive_that_was_read_and_is_written_again_is_not_bad_yet(tmp_path: Path) -> None:
    file = tmp_path / "a.gz"
    file.write_bytes(gzip.compress(b"one\n"))
    os.utime(file, (LONG_AGO, LONG_AGO))
    run = Runner(paths=str(file), **{"stable.ms": "600000"})
    assert run.run() == ["one"]
    data = gzip.compress(b"two\n" * 1000)
    file.write_bytes(data[:15])
    assert run.run() == []
    file.write_bytes(data)
    os.utime(file, (LONG_AGO, LONG_AGO))
    assert run.run() == ["two"] * 1000


def test_whole_files(tmp_path: Path) -> None:
    old(tmp_path / "a.bin", b"\x00\xffab\n" * 100_000)
    old(tmp_path / "b.bin", b"")
    run = Runner(paths=str(tmp_path), format="whole")
    assert run.run() == [b"\x00\xffab\n" * 100_000]
    assert len(run.offsets) == 2


def test_records_with_the_path_as_their_key(tmp_path: Path) -> None:
    file = old(tmp_path / "a.txt", "line of some length\n" * 30_000)
    run = Runner(paths=str(tmp_path), **{"record.key": "file"})
    columns = run.task.poll_columns()
    assert isinstance(columns, SourceColumns)
    assert columns.batch.key.values is not None
    assert set(columns.batch.key.values.to_pylist()) == {each.key for each in columns.records()} == {str(file)}


def test_a_file_that_cannot_be_read_is_said_once_and_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = old(tmp_path / "a.txt", "one\n")
    real, denied = os.open, [True]

    def refuse(path: Any, *args: Any, **kwargs: Any) -> int:
        if denied and str(path) == str(file):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *args, **kwargs)

    monkeypatch.setattr(os, "open", refuse)
    run = Runner(paths=str(tmp_path))
    assert run.run() == run.run() == []
    assert caplog.text.count("Permission denied") == 1
    denied.clear()
    assert run.run() == ["one"]


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_tasks_share_the_files(tmp_path: Path, count: int) -> None:
    names = {f"file{number}.txt" for number in range(60)}
    for name in names:
        old(tmp_path / name, f"{name}\n")
    connector = FolderSourceConnector()
    connector.start({"paths": str(tmp_path), "topic": "t", "mode": "files"})
    shares = [set(Runner(**config).run()) for config in connector.task_configs(count)]
    assert set().union(*shares) == names
    assert sum(map(len, shares)) == len(names)
    assert all(shares)


def test_a_missing_folder_is_waited_for(tmp_path: Path) -> None:
    run = Runner(paths=str(tmp_path / "in" / "*.txt"))
    assert run.run() == []
    old(tmp_path / "in" / "a.txt", "one\n")
    assert run.run() == ["one"]


def test_lag_is_in_bytes(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("one\nincomplete")
    run = Runner(paths=str(tmp_path), mode="logs")
    run.run()
    assert run.task.source_lag().bytes == len("incomplete")


@pytest.mark.parametrize("after", ["delete", "move"])
def test_the_same_file_delivered_again_is_read_again(tmp_path: Path, after: str) -> None:
    folder = {"after.read.folder": str(tmp_path / "out")} if after == "move" else {}
    run = Runner(paths=str(tmp_path / "in" / "*"), **{"after.read": after}, **folder)
    for _ in range(2):
        old(tmp_path / "in" / "a.txt", "one\n")
        assert run.run() == ["one"]
    run.restart()  # before it is stored that the file was handled
    os.utime(old(tmp_path / "in" / "a.txt", "one\n"), (LONG_AGO + 9, LONG_AGO + 9))
    assert run.run() == ["one"]
    assert run.run() == []
    assert list(run.offsets.values()) == [None]


@pytest.mark.parametrize("folder", ["in", "in/"])
def test_files_are_not_moved_onto_themselves(tmp_path: Path, folder: str) -> None:
    config = {"topic": "t", "mode": "files", "after.read": "move", "after.read.folder": f"{tmp_path}/{folder}"}
    for paths in (f"{tmp_path}/in", f"{tmp_path}/in/*.csv"):
        found = FolderSourceConnector.check({**config, "paths": paths})
        assert found["after.read.folder"].errors


@pytest.mark.parametrize("pattern", ["in", "in/*", "in/a.txt", "in/**/*.txt"])
def test_a_file_is_not_moved_to_its_own_folder_under_another_name(tmp_path: Path, pattern: str) -> None:
    file = old(tmp_path / "in" / "a.txt", "one\n")
    (tmp_path / "link").symlink_to("in")
    run = Runner(paths=f"{tmp_path}/{pattern}", **{"after.read": "move", "after.read.folder": str(tmp_path / "link")})
    assert run.run() == ["one"]
    assert file.read_text() == "one\n"
    assert run.task.metrics()["files-unhandled"] == 1


def test_a_large_compressed_file_that_grows_is_read_once(tmp_path: Path) -> None:
    data = gzip.compress(b"".join(b"line %d\n" % number for number in range(60_000)), 1)
    file = tmp_path / "a.gz"
    run = Runner(paths=str(file), **{"stable.ms": "600000"})
    found = []
    for share in (0.5, 0.8, 1):
        file.write_bytes(data[: int(len(data) * share)])
        found += run.run()
    os.utime(file, (LONG_AGO, LONG_AGO))
    assert found + run.run() == [f"line {number}" for number in range(60_000)]


def test_a_bad_header_is_that_of_one_file(tmp_path: Path) -> None:
    for name, text in {"a.csv": "id,id\n1,2\n", "b.csv": 'id,"x' + "y\n" * 400_000, "c.csv": "id\n3\n"}.items():
        old(tmp_path / name, text)
    run = Runner(paths=str(tmp_path), format="csv", **TOLERANT, **{"record.max.bytes": "262144"})
    assert [dict(each) for each in run.run()] == [{"id": "3"}]
    errors = sorted(str(error) for _, error in run.context.reported)
    assert errors[0].startswith(f"{tmp_path}/a.csv: The first line")
    assert errors[1].startswith(f"{tmp_path}/b.csv has no header")
    with pytest.raises(ConnectError, match=r"[ab]\.csv"):
        Runner(paths=str(tmp_path), format="csv").run()


def test_a_whole_file_that_is_too_large_is_one_bad_record(tmp_path: Path) -> None:
    old(tmp_path / "a", "x\n" * 300_000)
    run = Runner(paths=str(tmp_path), format="whole", **TOLERANT, **{"record.max.bytes": "262144"})
    assert run.run() == []
    assert len(run.context.reported) == 1


def test_a_file_that_is_deleted_while_it_is_read_is_read_to_its_end(tmp_path: Path) -> None:
    file = old(tmp_path / "a.txt", "line of some length\n" * 100_000)
    run = Runner(paths=str(tmp_path))
    first = run.task.poll_columns()
    assert first
    file.unlink()
    assert len(run.run()) + len(first) == 100_000


def test_a_file_that_a_scan_has_missed_is_continued(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("one\n")
    run = Runner(paths=str(tmp_path), **{"stable.ms": "600000"})
    assert run.run() == ["one"]
    file.rename(tmp_path / ".away")
    assert run.run() == []
    (tmp_path / ".away").rename(file)
    with file.open("a") as out:
        out.write("two\n")
    assert run.run() == ["two"]


def test_names_and_links_that_cannot_be_read_do_not_keep_others_from_being_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    old(tmp_path / "a.txt", "one\n")
    with open(os.fsencode(tmp_path) + b"/\xff.txt", "w") as out:  # noqa: PTH123 (a name of bytes)
        out.write("no\n")
    (tmp_path / "loop.txt").symlink_to("loop.txt")
    assert Runner(paths=str(tmp_path)).run() == ["one"]
    assert "its name is not UTF-8" in caplog.text


@pytest.mark.parametrize("paths", ["a [1] b", "a [1] b/*", "a [1] b/x[1].txt", "**"])
def test_names_with_the_characters_of_patterns(tmp_path: Path, paths: str) -> None:
    old(tmp_path / "a [1] b" / "x[1].txt", "one\n")
    expected = [] if paths == "a [1] b/*" else ["one"]  # a pattern is one, unless all of it is a name
    assert Runner(paths=f"{tmp_path}/{paths}").run() == expected


def test_a_crash_between_the_moves_of_a_file_and_its_marker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old(tmp_path / "in" / "a.txt", "one\n")
    (tmp_path / "in" / "a.txt.done").touch()
    run = Runner(paths=f"{tmp_path}/in/*.txt", **{"complete.when": "marker", "after.read": "delete"})
    delete = staticmethod(lambda path: Path(path).unlink() if path.endswith(".done") else 1 / 0)
    with monkeypatch.context() as patch:
        patch.setattr(LocalStorage, "delete", delete)
        with pytest.raises(ZeroDivisionError):
            run.run()
    assert [each.name for each in (tmp_path / "in").iterdir()] == ["a.txt"], "a marker must not wait for the next file"
    run.restart()
    assert run.run() == []
    assert list((tmp_path / "in").iterdir()) == []


@pytest.mark.parametrize("error", [errno.EXDEV, errno.EPERM])
def test_a_file_is_moved_where_a_second_name_is_impossible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int) -> None:
    real = os.link

    def refuse(source: Any, target: Any) -> None:
        if error == errno.EPERM or Path(source).parent != Path(target).parent:
            raise OSError(error, os.strerror(error))
        real(source, target)

    monkeypatch.setattr(os, "link", refuse)
    file = old(tmp_path / "in" / "a.txt", "one\n")
    for _ in range(2):  # the second time after a crash that came before the deletion
        assert after_read.move(str(file), str(tmp_path / "out"), str(tmp_path / "in")) == f"{tmp_path}/out/a.txt"
        assert not file.exists()
        old(file, "one\n")
    assert [each.name for each in (tmp_path / "out").iterdir()] == ["a.txt"]


@pytest.mark.parametrize("format_", ["lines", "whole"])
@pytest.mark.parametrize(("extension", "compress"), COMPRESS)
def test_a_damaged_file_is_reported_and_stays(
    tmp_path: Path, extension: str, compress: Callable[[bytes], bytes], format_: str
) -> None:
    lines = [f"line {number} {random.Random(number).random()}" for number in range(20_000)]  # noqa: S311 (so that it is large)
    data = compress("\n".join(lines).encode())
    file = old(tmp_path / f"a{extension}", data[: len(data) * 2 // 3])
    run = Runner(paths=str(tmp_path), format=format_, **TOLERANT, **{"after.read": "delete", "record.max.bytes": "10000000"})
    found = run.run()
    assert found == (lines[: len(found)] if format_ == "lines" else [])
    assert len(run.context.reported) == 1
    assert file.exists()
    assert run.run() == []


def test_many_files_are_moved_although_a_crash_came_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finished, "_FEWEST_NEW", 2)
    for number in range(9):
        old(tmp_path / f"{number}.txt", f"{number}\n")
    run = Runner(paths=str(tmp_path), **{"after.read": "delete"})
    run.task.commit = lambda: None  # type: ignore[method-assign]  # the crash
    assert len(run.run()) == 9
    run.restart()
    assert run.run() == []
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_not_complete_by_the_clock_of_another_machine(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    run = Runner(paths=str(tmp_path), **{"stable.ms": "2000", "after.read": "delete"})
    for seconds in (-5, 5):
        file.write_text("one\ntw")
        os.utime(file, (time.time() + seconds, time.time() + seconds))
        assert run.run() == (["one"] if seconds < 0 else [])
        assert file.exists()


def test_a_file_that_changes_while_it_is_moved_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = old(tmp_path / "in" / "a.txt", "one\n")
    real = after_read._link

    def replaced(source: Path, target: Path) -> bool:
        linked = real(source, target)
        old(tmp_path / "new", "another one\n").rename(source)
        return linked

    monkeypatch.setattr(after_read, "_link", replaced)
    with pytest.raises(OSError, match="changed meanwhile"):
        after_read.move(str(file), str(tmp_path / "out"), str(tmp_path / "in"))
    assert file.read_text() == "another one\n"


def test_a_link_is_moved_as_the_file_that_it_leads_to(tmp_path: Path) -> None:
    old(tmp_path / "store" / "a", "one\n")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").symlink_to("../store/a")
    after_read.move(str(tmp_path / "in" / "a"), str(tmp_path / "out"), str(tmp_path / "in"))
    assert (tmp_path / "out" / "a").read_text() == "one\n"
    assert not (tmp_path / "in" / "a").is_symlink()


def test_files_that_were_moved_through_a_link_are_not_read_again(tmp_path: Path) -> None:
    (tmp_path / "done").mkdir()
    old(tmp_path / "in" / "a.txt", "one\n")
    (tmp_path / "in" / "done").symlink_to("../done")
    run = Runner(paths=f"{tmp_path}/in/**/*.txt", **{"after.read": "move", "after.read.folder": f"{tmp_path}/done"})
    assert run.run() == ["one"]
    assert run.run() == []


def test_generations_of_a_dated_log_are_read_by_one_task(tmp_path: Path) -> None:
    for name in ("app.log", "app-2026-11-27.log", "app-2026-11-27.log.1", "app-2026-11-28.log"):
        old(tmp_path / name, f"{name}\n")
    connector = FolderSourceConnector()
    connector.start({"paths": str(tmp_path), "topic": "t", "mode": "logs", "rotated.close.ms": "0"})
    found = [value for config in connector.task_configs(5) for value in Runner(**config).run()]
    assert len(found) == len(set(found))


def test_a_bad_log_is_reported_once(tmp_path: Path) -> None:
    old(tmp_path / "a.log", "id,id\n1,2\n")
    run = Runner(paths=str(tmp_path), format="csv", mode="logs", **TOLERANT)
    for _ in range(3):
        assert run.run() == []
    assert len(run.context.reported) == 1


_HOUR_MS = 3_600_000
_HOURS = [Interval(1_767_225_600_000 + each * _HOUR_MS, 1_767_225_600_000 + (each + 1) * _HOUR_MS) for each in range(3)]


@pytest.mark.parametrize(
    ("lines", "more"),
    [
        (10, {}),
        (10, {"complete.when": "renamed"}),
        (20_000, {"complete.when": "renamed", "part.bytes": "262144"}),
        (10, {"after.read": "delete"}),
    ],
)
def test_a_run_of_an_interval_reads_the_files_that_were_modified_in_it(tmp_path: Path, lines: int, more: dict[str, str]) -> None:
    borders = [offset for hour in _HOURS for offset in (hour.start, hour.start + 1, hour.end - 1)]
    for moment in [_HOURS[0].start - 1, *borders, _HOURS[-1].end]:
        path = tmp_path / f"{moment}.txt"
        path.write_text(f"{moment}\n" * lines)
        os.utime(path, ns=(moment * 1_000_000, moment * 1_000_000))
    nearly = tmp_path / "nearly.txt"
    nearly.write_text("nearly\n")
    os.utime(nearly, ns=(_HOURS[1].start * 1_000_000 - 1, _HOURS[1].start * 1_000_000 - 1))
    for number, hour in enumerate(_HOURS):
        run = Runner(paths=str(tmp_path), **more, **IntervalRun("c", hour, 1).keys())
        own = [str(moment) for moment in (hour.start, hour.start + 1, hour.end - 1) for _ in range(lines)]
        assert sorted(run.run()) == sorted([*own, *(["nearly"] if number == 0 else [])])
        run.stop()
    left = sorted(each.stem for each in tmp_path.iterdir())
    if "after.read" in more:
        assert left == [str(_HOURS[0].start - 1), str(_HOURS[-1].end)], "other files are not touched"


def test_a_run_of_an_interval_reads_the_files_with_a_time_of_it_in_their_path(tmp_path: Path) -> None:
    for hour in range(4):
        folder = tmp_path / "dt=2026-03-29" / f"hour={hour:02d}"
        folder.mkdir(parents=True)
        (folder / "a.txt").write_text(f"{hour}\n")  # modified now
    first, by = 1_774_742_400_000, {"path.time.format": "dt=%Y-%m-%d/hour=%H"}  # 2026-03-29
    spans = [Interval(first + hour * 3_600_000, first + (hour + 1) * 3_600_000) for hour in range(4)]
    for hour, span in enumerate(spans):
        run = Runner(paths=f"{tmp_path}/**", **by, **IntervalRun("c", span, 1).keys())
        assert run.run() == [str(hour)]
        run.stop()
    (tmp_path / "other.txt").write_text("x\n")
    with pytest.raises(ConnectError, match=r"other\.txt has no time in its path .* belongs to no interval"):
        Runner(paths=f"{tmp_path}/**", **by, **IntervalRun("c", spans[0], 1).keys())


def test_a_line_that_comes_while_a_poll_waits_is_returned_by_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The runtime waits after an empty poll, and nothing would wake it: each line would be a tenth of a second late."""
    log = tmp_path / "a.log"
    log.write_text("first\n")
    run = FolderTask(mode="logs", paths=str(log))
    assert run.run() == ["first"]
    waits, wait = [], run.context.wait

    def write_and_wait(seconds: float) -> None:
        waits.append(seconds)
        with log.open("a") as out:
            out.write("next\n")
        wait(LIMIT)

    monkeypatch.setattr(run.context, "wait", write_and_wait)
    assert [record.value for record in run.poll()] == ["next"]
    assert len(waits) == 1
    run.stop()
