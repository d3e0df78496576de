"""The folder source on a real HDFS."""

from __future__ import annotations

import gzip
from collections.abc import Iterator

import pytest

from sluiceway.connectors.files.filesystem.hdfs import HdfsFileSystem, HdfsLogin
from sluiceway.connectors.folder.connector import FolderSourceConnector
from support.clusters.daemons import running
from support.clusters.hadoop import Hdfs
from support.folder_task import FolderTask


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    with running(Hdfs(tmp_path_factory.mktemp("hdfs"), nodes=1)) as made:
        made.await_ready()
        yield made


@pytest.fixture
def fs(hdfs: Hdfs) -> HdfsFileSystem:
    return HdfsFileSystem(HdfsLogin(hdfs.url))


def write(fs: HdfsFileSystem, path: str, data: bytes) -> None:
    fs.delete(path)
    output = fs.open(path)
    output.write(data)
    output.finish()


def config(hdfs: Hdfs, folder: str, **more: str) -> dict[str, str]:
    return {"paths": f"{hdfs.url}/{folder}/**", "mode": "files", "complete.when": "renamed", "topic": "t", **more}


def test_files_are_read_once_and_moved(hdfs: Hdfs, fs: HdfsFileSystem) -> None:
    lines = [f"line {number} {'x' * (number % 90)}" for number in range(120_000)]
    write(fs, "/in/2026/large.txt", "\n".join(lines).encode())
    write(fs, "/in/2026/11/small.txt.gz", gzip.compress(b"one\ntwo\n"))
    write(fs, "/done/2026/large.txt", b"another file")
    more = {"after.read": "move", "after.read.folder": f"{hdfs.url}/done"}
    assert not any(each.errors for each in FolderSourceConnector.validate(config(hdfs, "in", **more)).values())
    task = FolderTask(**config(hdfs, "in", **more))
    assert sorted(task.run()) == sorted([*lines, "one", "two"])
    assert fs.names("/in/2026") == fs.names("/in/2026/11") == []
    assert fs.names("/done/2026/11") == ["small.txt.gz"]
    kept, moved = sorted(fs.names("/done/2026"))
    assert fs.read(f"/done/2026/{kept}") == b"another file"
    assert fs.read(f"/done/2026/{moved}") == "\n".join(lines).encode()
    task.restart()
    assert task.run() == []
    task.stop()


def test_what_is_appended_is_read_and_another_file_too(hdfs: Hdfs, fs: HdfsFileSystem) -> None:
    write(fs, "/grows/a.txt", b"one\n")
    task = FolderTask(**config(hdfs, "grows"))
    assert task.run() == ["one"]
    with fs._client.append("/grows/a.txt") as more:
        more.write(b"two\n")
    assert task.run() == ["two"]
    write(fs, "/grows/a.txt", b"three\nfour\nfive\n")
    assert task.run() == ["three", "four", "five"]
    task.stop()


def test_a_name_node_that_is_away_loses_nothing(hdfs: Hdfs, fs: HdfsFileSystem) -> None:
    write(fs, "/away/a.txt", b"one\n")
    task = FolderTask(**config(hdfs, "away"))
    assert task.run() == ["one"]
    write(fs, "/away/b.txt", b"two\n")
    task.task._storage.filesystem._client = None  # type: ignore[attr-defined]  # every request fails
    assert task.run() == []
    assert task.context.waits_for[-1]
    task.restart()
    assert task.run() == ["two"]
    task.stop()
