"""The watch of folders: files that are new, changed, or renamed change its mark, and nothing else does."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from sluiceway.connectors.folder.connector import FolderSourceConnector
from sluiceway.connectors.folder.source_watch import FileChanges
from sluiceway.errors import RetriableError
from support.eventually import eventually


def watched(*paths: object, **more: str) -> FileChanges:
    given = {key.replace("_", "."): value for key, value in more.items()}
    config = {"topic": "t", "mode": "files", "paths": ",".join(map(str, paths)), **given}
    watch = FolderSourceConnector.watch(config)
    assert isinstance(watch, FileChanges)
    return watch


@pytest.fixture(params=[True, False], ids=["announced", "listed"])
def watch(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FileChanges]:
    """A watch of a folder, once with the announcements of the kernel alone, once without them."""
    if not request.param:
        monkeypatch.setattr("sluiceway.connectors.folder.local_files.LocalStorage.announces", False)
    (tmp_path / "old.csv").write_text("1")
    with closing(watched(f"{tmp_path}/*.csv", scan_interval_ms="60000" if request.param else "10")) as made:
        assert made.mark() == made.mark() == 0
        yield made


def write(folder: Path) -> None:
    (folder / "new.csv").write_text("1")


def append(folder: Path) -> None:
    with (folder / "old.csv").open("a") as file:
        file.write("2")


def replace(folder: Path) -> None:
    (folder / "other.tmp").write_text("2")
    (folder / "other.tmp").rename(folder / "old.csv")


def rename(folder: Path) -> None:
    (folder / "old.csv").rename(folder / "older.csv")


@pytest.mark.parametrize("change", [write, append, replace, rename])
def test_what_a_task_would_read_changes_the_mark(watch: FileChanges, tmp_path: Path, change: Callable[[Path], None]) -> None:
    change(tmp_path)
    eventually(lambda: watch.mark(), what="the change")


def test_what_a_task_would_not_read_changes_nothing(watch: FileChanges, tmp_path: Path) -> None:
    (tmp_path / "new.txt").write_text("1")
    (tmp_path / "new.csv.part").write_text("1")
    (tmp_path / "old.csv").read_text()
    (tmp_path / "old.csv").unlink()  # as after.read=delete does
    write(tmp_path)
    eventually(lambda: watch.mark(), what="the change that counts")
    assert watch.mark() in (1, 2), "two announcements of one file, at most"


def test_a_file_in_a_new_folder_is_found(tmp_path: Path) -> None:
    with closing(watched(f"{tmp_path}/**/*.csv", scan_interval_ms="10")) as watch:
        assert watch.mark() is None
        (tmp_path / "a").mkdir()
        write(tmp_path / "a")
        eventually(lambda: watch.mark(), what="the file in the folder")


def test_a_marker_is_a_change(tmp_path: Path) -> None:
    write(tmp_path)
    with closing(watched(f"{tmp_path}/*.csv", complete_when="marker", scan_interval_ms="60000")) as watch:
        assert watch.mark() == 0
        (tmp_path / "new.csv.done").touch()
        eventually(lambda: watch.mark(), what="the marker")


def test_a_folder_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    with closing(watched(tmp_path / "later", scan_interval_ms="10")) as watch:
        assert watch.mark() is None
        (tmp_path / "later").mkdir()
        write(tmp_path / "later")
        eventually(lambda: watch.mark(), what="the file in the folder")


def test_a_storage_that_does_not_answer_is_an_error_of_that_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(watched(tmp_path, scan_interval_ms="10")) as watch:
        assert watch.mark() is None

        def fail(*_: object) -> None:
            raise OSError(5, os.strerror(5))

        with monkeypatch.context() as patched:
            patched.setattr(watch._listing, "scan", fail)
            patched.setattr(watch, "_due", 0.0)
            with pytest.raises(RetriableError, match=r"cannot be listed: Input/output error"):
                watch.mark()
        write(tmp_path)
        eventually(lambda: watch.mark(), what="what came during the outage")


def test_a_folder_that_a_run_has_emptied_has_no_mark(tmp_path: Path) -> None:
    write(tmp_path)
    with closing(watched(tmp_path, scan_interval_ms="10")) as watch:
        assert watch.mark() == 0
        (tmp_path / "new.csv").unlink()
        eventually(lambda: watch.mark() is None, what="the empty folder")


def test_a_file_that_is_gone_is_no_change(tmp_path: Path) -> None:
    """A run that deletes what it has read must not start the next one."""
    for name in ("one.csv", "two.csv"):
        (tmp_path / name).write_text("1")
    with closing(watched(tmp_path, scan_interval_ms="60000")) as watch:
        assert watch.mark() == 0
        (tmp_path / "one.csv").unlink()
        for _ in range(2):
            watch._due = 0.0
            assert watch.mark() == 0
