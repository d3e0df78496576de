"""The folder source on an object store in memory, which has no inodes, no renames, and no announcements."""

from __future__ import annotations

import errno
import gzip
import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from sluiceway.connectors.files.filesystem import RemoteFileSystem, StorageError
from sluiceway.connectors.files.filesystem.objects import ObjectStore
from sluiceway.connectors.files.store import Store
from sluiceway.connectors.folder import readers, remote_files
from sluiceway.connectors.folder.remote_files import RemoteStorage
from support.folder_task import FolderTask

fsspec = pytest.importorskip("fsspec")

_names = itertools.count()


class Bucket:
    """A bucket of its own for a test."""

    def __init__(self) -> None:
        self.name = f"bucket{next(_names)}"
        self.fs = fsspec.filesystem("memory")
        self.fs.mkdir(f"/{self.name}")

    def url(self, path: str) -> str:
        return f"s3://{self.name}/{path}"

    def write(self, path: str, data: bytes) -> None:
        self.fs.pipe_file(f"/{self.name}/{path}", data)

    def read(self, path: str) -> bytes:
        return bytes(self.fs.cat_file(f"/{self.name}/{path}"))

    def paths(self) -> list[str]:
        return sorted(path.removeprefix(f"/{self.name}/") for path in self.fs.find(f"/{self.name}"))


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    monkeypatch.setattr(Store, "remote", lambda _: ObjectStore("memory", {}, 1 << 20))
    made = Bucket()
    yield made
    made.fs.rm(f"/{made.name}", recursive=True)


def task_of(bucket: Bucket, pattern: str = "in/**", **config: str) -> FolderTask:
    return FolderTask(**{"paths": bucket.url(pattern), "mode": "files", "complete.when": "renamed", **config})


def text(rows: int, name: str) -> bytes:
    return b"".join(b"%s %d\n" % (name.encode(), row) for row in range(rows))


def test_files_of_all_folders_are_read_once(bucket: Bucket) -> None:
    bucket.write("in/a.txt", b"one\ntwo\n")
    bucket.write("in/deep/er/b.txt.gz", gzip.compress(b"three\nfour"))
    bucket.write("in/deep/.hidden", b"no\n")
    bucket.write("out/c.txt", b"no\n")
    task = task_of(bucket, **{"record.key": "file"})
    assert sorted(task.run()) == ["four", "one", "three", "two"]
    assert {record.key for record in task.records} == {bucket.url("in/a.txt"), bucket.url("in/deep/er/b.txt.gz")}
    assert task.run() == []
    task.restart()
    assert task.run() == []
    bucket.write("in/new.txt", b"five\n")
    assert task.run() == ["five"]
    task.stop()


def test_equal_contents_are_two_files(bucket: Bucket) -> None:
    bucket.write("in/a.txt", b"same\n")
    bucket.write("in/b.txt", b"same\n")
    task = task_of(bucket)
    assert task.run() == ["same", "same"]
    task.stop()


@pytest.mark.parametrize("columnar", [True, False])
def test_a_restart_continues_after_any_record(bucket: Bucket, monkeypatch: pytest.MonkeyPatch, *, columnar: bool) -> None:
    monkeypatch.setattr(readers, "CHUNK_BYTES", 4096)
    lines = text(3000, "line")
    bucket.write("in/a.txt", lines)
    task = task_of(bucket, **{"batch.size": "700"})
    for _ in range(1000):
        polled = task.poll(columnar=columnar)
        if not polled:
            break
        task.take(polled[:-3] if len(polled) > 3 else polled)
        task.restart()
    assert [record.value for record in task.records] == lines.decode().splitlines()
    task.stop()


def test_a_replaced_object_is_read_from_its_start(bucket: Bucket) -> None:
    bucket.write("in/a.txt", b"old one\nold two\n")
    task = task_of(bucket)
    assert task.run() == ["old one", "old two"]
    bucket.write("in/a.txt", b"new one\nnew two\nnew three\n")
    assert task.run() == ["new one", "new two", "new three"]
    task.stop()


def test_what_is_appended_is_read(bucket: Bucket) -> None:
    bucket.write("in/a.txt", b"one\n")
    task = task_of(bucket)
    assert task.run() == ["one"]
    bucket.write("in/a.txt", b"one\ntwo\n")
    assert task.run() == ["two"]
    task.stop()


@pytest.mark.parametrize("after", ["delete", "keep"])
def test_what_is_appended_while_a_file_is_read_is_read(bucket: Bucket, monkeypatch: pytest.MonkeyPatch, after: str) -> None:
    monkeypatch.setattr(readers, "CHUNK_BYTES", 4096)
    bucket.write("in/a.txt", text(3000, "a"))
    task = task_of(bucket, **{"batch.size": "100", "after.read": after})
    task.take(task.poll())
    bucket.write("in/a.txt", text(3001, "a"))
    task.run()
    assert [record.value for record in task.records] == text(3001, "a").decode().splitlines()
    assert bucket.paths() == ([] if after == "delete" else ["in/a.txt"])
    task.stop()


def test_a_file_that_is_replaced_while_it_is_read_is_read_from_its_start(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "CHUNK_BYTES", 4096)
    bucket.write("in/a.txt", text(3000, "old"))
    task = task_of(bucket, **{"batch.size": "100"})
    task.take(task.poll())
    read = len(task.records)
    bucket.write("in/a.txt", text(3100, "new"))
    assert task.run() == text(3100, "new").decode().splitlines()
    assert [record.value for record in task.records[:read]] == text(read, "old").decode().splitlines()
    task.stop()


def test_a_storage_that_does_not_answer_is_asked_once_in_a_poll(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "CHUNK_BYTES", 4096)
    monkeypatch.setattr(remote_files, "_TRUSTED_SECONDS", 0)
    for number in range(9):
        bucket.write(f"in/{number}.txt", text(3000, "a"))
    task = task_of(bucket, **{"batch.size": "100"})
    task.take(task.poll())
    asked: list[str] = []

    def refuse(_: RemoteStorage, path: str) -> None:
        asked.append(path)
        raise TimeoutError(errno.ETIMEDOUT, "no answer")

    monkeypatch.setattr(RemoteStorage, "status", refuse)
    task.poll()
    assert len(asked) == 1
    task.stop()


def test_the_connection_ends_with_the_task(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[bool] = []
    monkeypatch.setattr(ObjectStore, "close", lambda _: closed.append(True))
    task = task_of(bucket)
    task.stop()
    assert closed


def test_files_are_moved_below_their_folder(bucket: Bucket) -> None:
    bucket.write("in/x/a.csv", b"id\n1\n")
    bucket.write("done/x/a.csv", b"another\n")
    task = task_of(bucket, "in/**/*.csv", **{"format": "csv", "after.read": "move", "after.read.folder": bucket.url("done")})
    assert [value["id"] for value in task.run()] == ["1"]
    moved = [path for path in bucket.paths() if path != "done/x/a.csv"]
    assert len(moved) == 1
    assert moved[0].startswith("done/x/a.csv.")
    assert (bucket.read("done/x/a.csv"), bucket.read(moved[0])) == (b"another\n", b"id\n1\n")
    task.stop()


def test_a_crash_between_copy_and_deletion_leaves_one_file(bucket: Bucket) -> None:
    bucket.write("in/a.txt", b"one\n")
    bucket.write("done/a.txt", b"one\n")  # the copy
    task = task_of(bucket, **{"after.read": "move", "after.read.folder": bucket.url("done")})
    assert task.run() == ["one"]
    assert bucket.paths() == ["done/a.txt"]
    task.stop()


def test_files_are_deleted_with_their_markers(bucket: Bucket) -> None:
    bucket.write("in/a.txt", b"one\n")
    bucket.write("in/b.txt", b"two\n")
    bucket.write("in/a.txt.done", b"")
    task = task_of(bucket, "in", **{"after.read": "delete", "complete.when": "marker"})
    assert task.run() == ["one"]
    assert bucket.paths() == ["in/b.txt"]
    task.stop()


class Unreliable(RemoteFileSystem):
    """Fails while ``fails`` is set."""

    def __init__(self, inner: RemoteFileSystem) -> None:
        self._inner = inner
        self.fails: Exception | None = None

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("_") or name == "fails":
            return object.__getattribute__(self, name)
        found = getattr(self._inner, name)

        def call(*args: Any) -> Any:
            if self.fails is not None:
                raise self.fails
            return found(*args)

        return call

    open = create = publish = read = entries = entry = reader = delete = check = None  # type: ignore[assignment]


@pytest.mark.parametrize("when", ["before", "between"])
def test_a_storage_that_is_away_for_a_while_loses_nothing(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, when: str
) -> None:
    monkeypatch.setattr(readers, "CHUNK_BYTES", 4096)
    monkeypatch.setattr(remote_files, "_TRUSTED_SECONDS", 0)
    filesystem = Unreliable(ObjectStore("memory", {}, 1 << 20))
    monkeypatch.setattr(Store, "remote", lambda _: filesystem)
    bucket.write("in/a.txt", text(3000, "a"))
    task = task_of(bucket, **{"batch.size": "100"})
    if when == "between":
        task.take(task.poll())
        assert task.records
    filesystem.fails = StorageError("Cannot list in: no route to host.")
    assert task.run() == [] if when == "before" else len(task.run()) < 3000
    assert "no route to host" in caplog.text
    assert "no route to host" in str(task.context.waits_for[-1])
    filesystem.fails = None
    task.run()
    assert [record.value for record in task.records] == text(3000, "a").decode().splitlines()
    assert task.context.waits_for[-1] is None
    task.stop()


def test_a_folder_that_may_not_be_read_is_passed_over(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    bucket.write("in/open/a.txt", b"one\n")
    bucket.write("in/closed/b.txt", b"two\n")
    inner = RemoteStorage._entries

    def entries(self: RemoteStorage, folder: str) -> Any:
        if folder.endswith("closed"):
            raise PermissionError(errno.EACCES, "Permission denied")
        return inner(self, folder)

    monkeypatch.setattr(RemoteStorage, "_entries", entries)
    for pattern in ("in/*/*.txt", "in/**", "in/**/*.txt"):
        task = task_of(bucket, pattern)
        assert task.run() == ["one"]
        task.stop()
    assert "closed cannot be read" in caplog.text
