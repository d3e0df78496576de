"""The folder source with a server of S3's protocol."""

from __future__ import annotations

import gzip
import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from sluiceway.connectors.files.filesystem import objects
from sluiceway.connectors.folder import finished, remote_files
from sluiceway.connectors.folder.connector import FolderSourceConnector
from support.eventually import eventually
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
        self.fs: Any = server.files()
        self.bucket = server.bucket
        self.url = f"s3://{server.bucket}/test{next(_names)}"

    def write(self, path: str, data: bytes) -> None:
        self.fs.pipe_file(f"{self.url}/{path}", data)

    def paths(self) -> list[str]:
        root = self.url.removeprefix("s3://")
        return sorted(path.removeprefix(f"{root}/") for path in self.fs.find(root))

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


class Tagging:
    """A task that tags, and the tags of its objects."""

    def __init__(self, prefix: Prefix, **config: str) -> None:
        self.prefix = prefix
        self.task = prefix.task(**{"after.read": "tag", **config})
        self.commit = self.task.task.commit

    def crash_before_commit(self) -> None:
        self.task.task.commit = lambda: None  # type: ignore[method-assign]

    def tags(self, path: str) -> dict[str, str]:
        return dict(self.prefix.fs.get_tags(f"{self.prefix.url}/{path}"))


def test_objects_are_tagged_when_all_of_their_records_are_stored(prefix: Prefix, server: S3Server) -> None:
    for name in ("in/a b+ü.txt", "in/b.txt"):
        prefix.write(name, b"one\ntwo\n")
    prefix.write("in/empty.txt", b"")
    prefix.fs.put_tags(f"{prefix.url}/in/b.txt", {"owner": "shop"})
    found = Tagging(prefix, **{"after.read.tag": "state=all read"})
    records = found.task.poll()
    assert records
    found.task.take(records[:-1])
    assert [found.tags(path) for path in ("in/a b+ü.txt", "in/b.txt", "in/empty.txt")] == [{}, {"owner": "shop"}, {}]
    found.task.restart()
    found.task.run()
    assert [record.value for record in found.task.records] == ["one", "two"] * 2
    assert found.tags("in/a b+ü.txt") == found.tags("in/empty.txt") == {"state": "all read"}
    assert found.tags("in/b.txt") == {"owner": "shop", "state": "all read"}
    assert found.task.run() == []  # stores that they have their tags
    before = len(server.requests())
    found.task.restart()
    assert found.task.run() == []
    assert not [each for each in server.requests()[before:] if "tagging" in each]
    found.task.stop()


def test_a_crash_before_the_tag_leaves_none_without_it_and_tags_none_twice(
    prefix: Prefix, server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finished, "_FEWEST_NEW", 10)
    for number in range(20):
        prefix.write(f"in/{number}.txt", b"one\n")
    found = Tagging(prefix)
    found.crash_before_commit()
    assert len(found.task.run()) == 20
    assert not any("finished" in partition for partition in found.task.offsets), "their tags would be forgotten"
    found.task.restart()
    assert found.task.run() == []
    assert all(found.tags(f"in/{number}.txt") == {"sluiceway": "read"} for number in range(20))
    assert found.task.run() == []  # stores that they have their tags
    before = len(server.requests())
    found.task.restart()
    assert found.task.run() == []
    assert not [each for each in server.requests()[before:] if "tagging" in each]
    assert any("finished" in partition for partition in found.task.offsets)
    prefix.write("in/5.txt", b"one\n")  # again, without its tag
    prefix.write("in/6.txt", b"six\n")
    found.task.restart()
    assert found.task.run() == ["six"]
    assert found.tags("in/6.txt") == {"sluiceway": "read"}
    found.task.stop()


def test_an_object_that_is_replaced_before_its_tag_is_read_first(prefix: Prefix) -> None:
    prefix.fs.call_s3("put_bucket_versioning", Bucket=prefix.bucket, VersioningConfiguration={"Status": "Enabled"})
    prefix.write("in/a.txt", b"one\n")
    found = Tagging(prefix)
    found.crash_before_commit()
    assert found.task.run() == ["one"]
    prefix.write("in/a.txt", b"other\n")
    found.commit()
    assert found.tags("in/a.txt") == {}
    found.task.task.commit = found.commit  # type: ignore[method-assign]
    assert found.task.run() == ["other"]
    assert found.tags("in/a.txt") == {"sluiceway": "read"}
    found.task.stop()


def test_a_marker_gets_the_tag_too_and_an_object_that_is_gone_none(prefix: Prefix) -> None:
    for name in ("in/a.txt", "in/b.txt"):
        prefix.write(name, b"one\n")
        prefix.write(f"{name}.done", b"")
    found = Tagging(prefix, **{"complete.when": "marker"})
    found.crash_before_commit()
    assert found.task.run() == ["one", "one"]
    prefix.fs.rm(f"{prefix.url}/in/a.txt.done")
    found.task.restart()
    assert found.task.run() == []
    assert found.tags("in/a.txt") == found.tags("in/b.txt") == found.tags("in/b.txt.done") == {"sluiceway": "read"}
    assert found.task.metric("files-unhandled") == 0
    found.task.stop()


def test_an_object_that_cannot_be_tagged_is_said_and_tried_again(prefix: Prefix, caplog: pytest.LogCaptureFixture) -> None:
    prefix.write("in/a.txt", b"one\n")
    prefix.fs.put_tags(f"{prefix.url}/in/a.txt", {f"tag{number}": "" for number in range(10)})  # as many as S3 allows
    found = Tagging(prefix)
    assert found.task.run() == ["one"]
    assert "a.txt was read, but not tagged" in caplog.text
    assert found.task.metric("files-unhandled") == 1
    prefix.fs.put_tags(f"{prefix.url}/in/a.txt", {"owner": "shop"})
    found.task.restart()
    assert found.task.run() == []
    assert found.tags("in/a.txt") == {"owner": "shop", "sluiceway": "read"}
    found.task.stop()


def lists(server: S3Server, since: int) -> list[str]:
    return [each for each in server.requests()[since:] if "list-type" in each]


class Ascending:
    """A task that lists keys in order, and the requests of its scans."""

    def __init__(self, prefix: Prefix, server: S3Server, pattern: str = "in/**/*.txt", **config: str) -> None:
        self.prefix, self.server = prefix, server
        self.task = prefix.task(pattern, **{"listing.order": "ascending", **config})

    def requests_of_a_scan(self) -> list[str]:
        before = len(self.server.requests())
        assert self.task.poll() == []
        return self.server.requests()[before:]

    def list_all(self) -> None:
        self.task.task._listing._whole_due = 0.0  # type: ignore[attr-defined]


def test_a_scan_of_finished_objects_with_growing_keys_is_one_request(
    prefix: Prefix, server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, "_PAGE", 7)
    for day in range(1, 9):
        for number in range(5):
            prefix.write(f"in/2026/11/0{day}/ü {number}+.txt", f"{day} {number}\n".encode())
    prefix.write("in/2026/11/04/no.csv", b"no\n")
    prefix.write("in/2026/11/04/.hidden.txt", b"no\n")
    prefix.write("in/2026/11/04/folder/", b"")
    found = Ascending(prefix, server)
    assert sorted(found.task.run()) == sorted(f"{day} {number}" for day in range(1, 9) for number in range(5))
    (request,) = found.requests_of_a_scan()
    assert "list-type" in request
    assert "start-after" in request
    prefix.write("in/2026/11/99/no.csv", b"no\n")
    assert found.task.run() == []
    for number in range(9):
        prefix.write(f"in/2026/11/09/{number}.txt", f"{number}\n".encode())
    assert found.task.run() == [str(number) for number in range(9)]
    assert len(found.requests_of_a_scan()) == 1
    found.task.restart()
    assert found.task.run() == []  # looks at all
    assert len(found.requests_of_a_scan()) == 1
    found.task.stop()


def test_what_does_not_sort_after_the_last_key_is_found_by_a_whole_listing(
    prefix: Prefix, server: S3Server, caplog: pytest.LogCaptureFixture
) -> None:
    prefix.write("in/2026/11/05/a.txt", b"five\n")
    found = Ascending(prefix, server)
    assert found.task.run() == ["five"]
    prefix.write("in/2026/11/04/late.txt", b"late\n")
    prefix.write("in/2026/11/05/a.txt", b"replaced\n")
    prefix.write("in/2026/11/06/a.txt", b"six\n")
    assert found.task.run() == ["six"]
    assert "found late" not in caplog.text
    found.list_all()
    assert sorted(found.task.run()) == ["late", "replaced"]
    assert "2 files are found late" in caplog.text
    assert "04/late.txt" in caplog.text
    caplog.clear()
    found.list_all()
    assert found.task.run() == []
    assert "found late" not in caplog.text
    found.task.stop()


def test_a_whole_listing_is_made_from_time_to_time(prefix: Prefix, server: S3Server) -> None:
    prefix.write("in/b.txt", b"b\n")
    found = Ascending(prefix, server, **{"listing.whole.interval.ms": "0"})
    assert found.task.run() == ["b"]
    prefix.write("in/a.txt", b"a\n")
    eventually(lambda: "a" in found.task.run(), what="the whole listing")
    found.task.stop()


def test_an_object_that_is_not_complete_when_it_is_listed_is_read_later(prefix: Prefix, server: S3Server) -> None:
    prefix.write("in/1.txt", b"one\n")
    prefix.write("in/2.txt", b"two\n")
    prefix.write("in/2.txt.done", b"")
    found = Ascending(prefix, server, "in", **{"complete.when": "marker"})
    assert found.task.run() == ["two"]
    prefix.write("in/3.txt", b"three\n")
    prefix.write("in/3.txt.done", b"")
    assert found.task.run() == ["three"]
    prefix.write("in/1.txt.done", b"")
    assert found.task.run() == ["one"]
    assert len(lists(server, 0)) > 0
    assert len(found.requests_of_a_scan()) == 1
    found.task.stop()


def test_an_object_that_changes_while_it_is_watched_is_read_when_it_is_stable(prefix: Prefix, server: S3Server) -> None:
    prefix.write("in/1.txt", b"one\n")
    found = Ascending(prefix, server, **{"complete.when": "stable", "stable.ms": "300"})
    prefix.write("in/2.txt", b"two\n")
    prefix.write("in/1.txt", b"replaced\n")
    eventually(lambda: found.task.run() is not None and len(found.task.records) >= 2, what="both objects")
    assert sorted(record.value for record in found.task.records) in (["replaced", "two"], ["one", "replaced", "two"])
    eventually(lambda: not found.task.task._readers or not found.task.run(), what="the end of both")
    found.task.stop()


def test_an_object_that_is_deleted_before_it_is_complete_is_given_up(prefix: Prefix, server: S3Server) -> None:
    prefix.write("in/1.txt", b"one")
    found = Ascending(prefix, server, **{"complete.when": "stable", "stable.ms": "3600000"})
    found.task.poll()
    assert found.task.task._readers
    prefix.fs.rm(f"{prefix.url}/in/1.txt")
    eventually(lambda: found.task.poll() == [] and not found.task.task._readers, what="the end of the reader")
    found.task.stop()


def test_objects_that_are_not_listed_are_not_forgotten(prefix: Prefix, server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finished, "_FEWEST_NEW", 10)
    for number in range(20):
        prefix.write(f"in/1{number:02}.txt", b"old\n")
    found = Ascending(prefix, server, **{"forget.after.ms": "0"})
    monkeypatch.setattr(finished, "_finished_at", lambda _: 0)  # long ago
    assert len(found.task.run()) == 20
    for number in range(20):
        prefix.write(f"in/2{number:02}.txt", b"new\n")
    assert found.task.run() == ["new"] * 20
    assert len(found.task.task._finished) == 40
    found.list_all()
    assert found.task.run() == []
    prefix.fs.rm([f"{prefix.url}/in/1{number:02}.txt" for number in range(20)])
    found.list_all()
    for number in range(20):
        prefix.write(f"in/3{number:02}.txt", b"new\n")
    found.task.run()
    assert len(found.task.task._finished) == 40, "the deleted ones are forgotten when a whole listing lacks them"
    found.task.stop()


def test_each_path_has_an_order_of_its_own(prefix: Prefix, server: S3Server) -> None:
    for shop in ("b", "a"):
        prefix.write(f"in/{shop}/2026-11-01.txt", shop.encode())
    prefix.write("in/zzz.log", b"no\n")  # sorts after all and does not match
    paths = f"{prefix.url}/in/a/*.txt,{prefix.url}/in/b/2026-*.txt"
    found = Ascending(prefix, server, paths=paths)
    assert sorted(found.task.run()) == ["a", "b"]
    prefix.write("in/a/2026-11-02.txt", b"a2")
    prefix.write("in/a/2026/x.txt", b"no")
    assert found.task.run() == ["a2"]
    prefix.write("in/b/2026-11-02.txt", b"b2")
    assert found.task.run() == ["b2"]
    assert len(found.requests_of_a_scan()) == 2
    found.task.stop()


def test_a_deleted_version_is_no_object(prefix: Prefix, server: S3Server) -> None:
    prefix.fs.call_s3("put_bucket_versioning", Bucket=prefix.bucket, VersioningConfiguration={"Status": "Enabled"})
    prefix.write("in/1.txt", b"one\n")
    prefix.write("in/2.txt", b"first\n")
    prefix.write("in/2.txt", b"second\n")
    prefix.fs.rm(f"{prefix.url}/in/1.txt")
    found = Ascending(prefix, server, **{"after.read": "delete"})
    assert found.task.run() == ["second"]
    assert not prefix.fs.exists(f"{prefix.url}/in/2.txt")
    prefix.write("in/3.txt", b"three\n")
    assert found.task.run() == ["three"]
    found.task.stop()


def test_a_refused_login_is_said_at_its_keys(prefix: Prefix) -> None:
    found = FolderSourceConnector.validate(prefix.config())
    assert not any(each.errors for each in found.values())
    found = FolderSourceConnector.validate({**prefix.config(), "paths": "s3://missing/in"})
    assert [name for name, each in found.items() if each.errors] == ["paths"]
    assert "there is no bucket missing" in found["paths"].errors[0]
