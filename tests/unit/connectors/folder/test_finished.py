"""The memory of files that were read to their end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sluiceway.connectors.folder import finished, task
from sluiceway.connectors.folder.finished import BUCKETS, FinishedFiles, bucket_of, key_of
from sluiceway.connectors.folder.identity import Checksum, FileStatus, Identity
from sluiceway.errors import ConnectError
from support.folder_task import FolderTask

DAY = 24 * 3600.0


@pytest.fixture(autouse=True)
def fold_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finished, "_FEWEST_NEW", 10)
    monkeypatch.setattr(task, "_ASKED_AT_ONCE", 15)


def identity(number: int) -> Identity:
    return Identity(2000 + number, Checksum(1024, number), Checksum(256, number + 1), 7, number, 3000, 10**18 + number)


def paths(count: int) -> list[str]:
    return [f"/in/file{number}.csv" for number in range(count)]


def keys(count: int) -> set[int]:
    return {key_of(path) for path in paths(count)}


def filled(count: int, forget: float = DAY) -> FinishedFiles:
    files = FinishedFiles(forget)
    for number, path in enumerate(paths(count)):
        files.add(path, identity(number))
    return files


def test_buckets_replace_the_offsets_of_files() -> None:
    files = filled(500)
    stored = files.folded(keys(500))
    assert [partition for partition, offset in stored if offset is None] == [{"file": path} for path in paths(500)]
    buckets = [(partition, offset) for partition, offset in stored if offset is not None]
    assert len(buckets) == BUCKETS
    loaded = FinishedFiles(DAY)
    for partition, offset in buckets:
        loaded.load(partition["finished"], json.loads(json.dumps(offset)))
    assert [loaded.get(path) for path in paths(500)] == [identity(number) for number in range(500)]
    assert loaded.get("/in/other.csv") is None
    assert files.folded(keys(500)) == []


def test_only_buckets_with_new_files_are_stored_again() -> None:
    files = filled(100)
    files.folded(keys(100))
    new = [f"/in/new{number}.csv" for number in range(12)]
    for path in new:
        files.add(path, identity(1))
    stored = [partition["finished"] for partition, offset in files.folded({*keys(100), *map(key_of, new)}) if offset is not None]
    assert set(stored) == {bucket_of(path) for path in new}


def test_a_file_is_finished_as_long_as_it_has_not_changed() -> None:
    files = filled(3)
    status = FileStatus(7, 1, 3000, 10**18 + 1)
    assert files.has(key_of("/in/file1.csv"), status)
    assert files.has(key_of("/in/file1.csv"), status._replace(links=2))
    for change in ({"size": 3001}, {"modified": 5}, {"inode": 2}, {"device": 8}):
        assert not files.has(key_of("/in/file1.csv"), status._replace(**change))


@pytest.mark.parametrize(("forget", "left"), [(DAY, 20), (-1.0, 5)])
def test_files_that_are_gone_are_forgotten_after_a_while(forget: float, left: int) -> None:
    files = filled(20, forget)
    files.folded(keys(5))
    assert len(files) == left


def test_files_that_are_unhandled_keep_their_own_offsets() -> None:
    files, unhandled = filled(30), {"/in/file3.csv", "/in/file4.csv"}
    stored = files.folded(keys(30), unhandled)
    assert not [partition for partition, _ in stored if partition.get("file") in unhandled]
    loaded = FinishedFiles(DAY)
    for partition, offset in stored:
        if offset is not None:
            loaded.load(partition["finished"], offset)
    assert {path for path in paths(30) if loaded.get(path) is None} == unhandled
    for path in [f"/in/new{number}.csv" for number in range(10)]:
        files.add(path, identity(1))
    assert {"file": "/in/file3.csv"} in [partition for partition, _ in files.folded(keys(30))]


@pytest.mark.parametrize("text", ["", "abc", "~"])
def test_a_bucket_that_cannot_be_read_fails_the_task_with_what_to_do(text: str) -> None:
    with pytest.raises(ConnectError, match="DELETE it"):
        FinishedFiles(DAY).load(3, {"files": text} if text else {})


def test_a_task_reads_no_file_again_that_a_bucket_has(tmp_path: Path) -> None:
    for number in range(40):
        (tmp_path / f"file{number}").write_text("line\n")
    run = FolderTask(paths=str(tmp_path), mode="files", **{"complete.when": "renamed"})

    def again() -> int:
        run.restart()
        return len(run.run())

    assert len(run.run()) == 40
    assert all("finished" in partition for partition, offset in run.offsets.items() if offset is not None)
    assert again() == 0
    with (tmp_path / "file5").open("a") as out:
        out.write("more\n")
    assert again() == 1
    assert again() == 0
    for number in (7, 39):
        run.offsets[json.dumps({"file": str(tmp_path / f"file{number}")})] = {"position": 0}
    assert again() == 2


def test_a_scan_keeps_only_the_files_that_have_something_to_do(tmp_path: Path) -> None:
    for number in range(40):
        (tmp_path / f"file{number}").write_text("line\n")
    config = {"paths": str(tmp_path), "mode": "files", "complete.when": "renamed", task.TASKS: "2"}
    first, second = (FolderTask(**config, **{task.TASK: number}) for number in "01")
    assert len(first.run()) + len(second.run()) == 40
    (tmp_path / "file40").write_text("line\n")
    found = [set(each.task._listing.scan(each.task._refused, each.task._passes_over).found) for each in (first, second)]
    assert found[0] | found[1] == {str(tmp_path / "file40")}
    assert not found[0] & found[1]
