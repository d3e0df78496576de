"""The folder source with a server of S3's protocol."""

from __future__ import annotations

import gzip
import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from sluiceway.connectors.folder import remote_files
from sluiceway.connectors.folder.connector import FolderSourceConnector
from support.folder_task import FolderTask
from support.s3_server import S3Server, s3_server

_names = itertools.count()


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with s3_server() as made:
        yield made


class Prefix:
    """A prefix of its own for a test."""

    def __init__(self, server: S3Server) -> None:
        self._server = server
        self._fs: Any = server.files()
        self.url = f"s3://{server.bucket}/test{next(_names)}"

    def write(self, path: str, data: bytes) -> None:
        self._fs.pipe_file(f"{self.url}/{path}", data)

    def paths(self) -> list[str]:
        root = self.url.removeprefix("s3://")
        return sorted(path.removeprefix(f"{root}/") for path in self._fs.find(root))

    def config(self, pattern: str = "in/**") -> dict[str, str]:
        access = {key: value for key, value in self._server.config.items() if key != "s3.bucket.name"}
        return {"paths": f"{self.url}/{pattern}", "mode": "files", "topic": "t", "complete.when": "renamed", **access}

    def task(self, pattern: str = "in/**", **more: str) -> FolderTask:
        return FolderTask(**{**self.config(pattern), **more})


@pytest.fixture
def prefix(server: S3Server) -> Prefix:
    return Prefix(server)


def test_objects_are_read_once_and_moved(prefix: Prefix) -> None:
    rows = [f"{number},{'x' * (number % 90)}" for number in range(100_000)]  # more than is read ahead
    prefix.write("in/large.csv", "\n".join(["id,text", *rows]).encode())
    prefix.write("in/2026/11/29/small.csv.gz", gzip.compress(b"id,text\n-1,one\n"))
    prefix.write("in/2026/readme.txt", b"no")
    prefix.write("in/folder/", b"")  # an object that stands for a folder
    config = {"format": "csv", "after.read": "move", "after.read.folder": f"{prefix.url}/done"}
    task = prefix.task("in/**/*.csv*", **config)
    assert task.columnar == 0
    found = task.run()
    assert sorted(int(value["id"]) for value in found) == list(range(-1, 100_000))
    assert task.columnar > 0
    assert [path for path in prefix.paths() if not path.endswith("/")] == [
        "done/2026/11/29/small.csv.gz",
        "done/large.csv",
        "in/2026/readme.txt",
    ]
    task.restart()
    assert task.run() == []
    prefix.write("in/large.csv", b"id,text\n-2,again\n")
    assert [value["id"] for value in task.run()] == ["-2"]
    task.stop()


def test_an_object_that_is_replaced_while_it_is_read(prefix: Prefix, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_files, "_TRUSTED_SECONDS", 0)
    prefix.write("in/a.txt", b"".join(b"old line %07d\n" % number for number in range(250_000)))
    task = prefix.task()
    task.take(task.poll())
    read = len(task.records)
    assert 0 < read < 250_000
    new = [f"new line {number}" for number in range(1000)]
    prefix.write("in/a.txt", "\n".join(new).encode())
    found = task.run()
    assert found[-1000:] == new
    assert all(value.startswith("old line ") for value in found[:-1000])  # what had been read ahead
    task.stop()


def test_a_refused_login_is_said_at_its_keys(prefix: Prefix) -> None:
    found = FolderSourceConnector.validate(prefix.config())
    assert not any(each.errors for each in found.values())
    found = FolderSourceConnector.validate({**prefix.config(), "paths": "s3://missing/in"})
    assert [name for name, each in found.items() if each.errors] == ["paths"]
    assert "there is no bucket missing" in found["paths"].errors[0]
