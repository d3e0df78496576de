"""File sinks with a server of S3's protocol."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import pyarrow.parquet as pq
import pytest

from sluiceway.api import TopicPartition
from sluiceway.connectors.files.commit_log import CommitLog
from sluiceway.connectors.files.filesystem.objects import ObjectStore
from sluiceway.discovery import connector_class
from sluiceway.errors import FencedError
from support.file_sinks import TOPIC, FileSink, rows
from support.s3_server import S3Server, s3_server

P0 = TopicPartition(TOPIC, 0)
S3 = {
    "connector.class": "io.confluent.connect.s3.S3SinkConnector",
    "storage.class": "io.confluent.connect.s3.storage.S3Storage",
    "format.class": "io.confluent.connect.s3.format.parquet.ParquetFormat",
    "flush.size": "100",
}


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with s3_server() as made:
        yield made


@pytest.fixture
def config(server: S3Server, request: pytest.FixtureRequest) -> dict[str, str]:
    return {**S3, **server.config, "topics.dir": request.node.name.replace("[", "-").replace("]", "")}


def store(server: S3Server) -> ObjectStore:
    options = {"key": "key", "secret": "secret", "endpoint_url": server.url}
    return ObjectStore("s3", options, 5 * 1024 * 1024)


def found(server: S3Server, folder: str) -> dict[str, list[int]]:
    """Return the ids in each object."""
    fs = server.files()
    return {
        path.rpartition("/")[2]: [each["id"] for each in pq.read_table(io.BytesIO(fs.cat_file(path))).to_pylist()]
        for path in sorted(fs.find(f"{server.bucket}/{folder}"))
    }


def test_objects_hold_each_record_once(server: S3Server, config: dict[str, str]) -> None:
    sink = FileSink(config, [P0])
    sink.put(rows(0, 250), columns=True)
    assert sink.commit() == {P0: 200}
    sink.task.stop()
    sink = FileSink(config, [P0])
    assert sink.next == {P0: 200}
    sink.put(rows(200, 260))
    assert sink.end() == {P0: 260}
    expected = {
        f"{TOPIC}+0+{first:010d}.snappy.parquet": list(range(first, end)) for first, end in [(0, 100), (100, 200), (200, 260)]
    }
    assert found(server, config["topics.dir"]) == expected


@pytest.mark.parametrize("point", ["planned", "copied"])
def test_a_commit_that_was_interrupted_is_finished(
    server: S3Server, config: dict[str, str], point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def dying(*_: Any) -> None:
        raise Killed

    config |= {"logs.dir": f"logs-{point}"}
    sink = FileSink(config, [P0])
    with monkeypatch.context() as patch:
        if point == "planned":
            patch.setattr(CommitLog, "publish", dying)
        else:
            patch.setattr(ObjectStore, "_remove", dying)
        with pytest.raises(Killed):
            sink.put(rows(0, 100))
    again = FileSink(config, [P0])
    assert again.next == {P0: 100}
    again.end()
    assert found(server, config["topics.dir"]) == {f"{TOPIC}+0+0000000000.snappy.parquet": list(range(100))}
    assert not [path for path in server.files().find(f"{server.bucket}/logs-{point}") if path.endswith(".tmp")]


def test_only_one_of_two_writers_commits(server: S3Server) -> None:
    fs = store(server)
    first, second = CommitLog(fs, f"{server.bucket}/race"), CommitLog(fs, f"{server.bucket}/race")
    known = first.append(None, epoch=0, end=1)
    second.append(known, epoch=0, end=2)
    with pytest.raises(FencedError):
        first.append(known, epoch=0, end=3)
    newest = second.newest()
    assert newest is not None
    assert newest.end == 2


def test_validation_names_a_missing_bucket_and_a_wrong_login(server: S3Server, config: dict[str, str]) -> None:
    connector = connector_class(S3["connector.class"])
    assert not [each.errors for each in connector.validate(config).values() if each.errors]
    errors = {
        name: each.errors for name, each in connector.validate({**config, "s3.bucket.name": "nosuch"}).items() if each.errors
    }
    assert list(errors) == ["s3.bucket.name"]
    assert "there is no bucket nosuch" in errors["s3.bucket.name"][0]


@pytest.mark.long
def test_a_server_that_is_away_is_waited_for(config: dict[str, str]) -> None:
    away = {**config, "store.url": "http://127.0.0.1:1", "name": "away"}
    sink = FileSink(away, [P0])
    with pytest.raises(Exception, match=r"Cannot .*Check that the storage is reachable"):
        sink.put(rows(0, 10))
    assert sink.context.timeouts == [5000]


def test_encryption_and_acl_are_those_of_the_config(server: S3Server, config: dict[str, str]) -> None:
    encryption = {"s3.ssea.name": "aws:kms", "s3.sse.kms.key.id": "alias/lake", "s3.acl.canned": "bucket-owner-full-control"}
    sink = FileSink({**config, **encryption}, [P0])
    sink.put(rows(0, 100))
    sink.end()
    fs = server.files()
    [path] = fs.find(f"{server.bucket}/{config['topics.dir']}")
    found = fs.call_s3("head_object", Bucket=server.bucket, Key=path.partition("/")[2])
    assert (found["ServerSideEncryption"], found["SSEKMSKeyId"]) == ("aws:kms", "alias/lake")


def test_credentials_come_from_the_environment(server: S3Server, config: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    sink = FileSink({key: value for key, value in config.items() if not key.startswith("aws.")}, [P0])
    sink.put(rows(0, 100))
    assert sink.end() == {P0: 100}
    assert len(found(server, config["topics.dir"])) == 1


def test_topics_that_transforms_make_of_records_are_one_part_of_a_key(server: S3Server, config: dict[str, str]) -> None:
    sink = FileSink(config, [P0])
    hostile = ["../../out", "..", "/abs", "%2e%2e/x", "a\\b", "", "nul\x00", "half \ud83d", "a?versionId=1", "a#1", "ü"]
    records = rows(0, len(hostile))
    for record, topic in zip(records, hostile, strict=True):
        record.topic = topic
    sink.put(records)
    sink.end()
    files = server.files()
    written = [path for path in files.find(server.bucket) if "_sluiceway" not in path and config["topics.dir"] in path]
    assert {path.removeprefix(f"{server.bucket}/{config['topics.dir']}/").count("/") for path in written} == {2}
    assert len(written) == len(hostile)
    assert not [path for path in files.find(server.bucket) if "/out/" in path or path.startswith(f"{server.bucket}/out")]
    sink.task.stop()
