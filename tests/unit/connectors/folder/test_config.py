from __future__ import annotations

import pytest

from sluiceway.api import ExactlyOnceSupport
from sluiceway.connectors.files.store import Store
from sluiceway.connectors.folder.config import options
from sluiceway.connectors.folder.connector import FolderSourceConnector
from sluiceway.connectors.folder.remote_files import RemoteStorage
from sluiceway.errors import ConfigError, ConnectError

GOOD = {"paths": "/data/*.csv", "topic": "t", "mode": "files"}
IDENTITY = {
    "position": 5,
    "head_bytes": 5,
    "head_crc": 1,
    "mark_bytes": 5,
    "mark_crc": 1,
    "device": 1,
    "inode": 2,
    "size": 5,
    "modified": 3,
}

BAD = {
    "paths": ["", "data", "ftp://host/a", "s3://bucket/../a", "/data/*.csv,s3://bucket/a", "/data/../etc", "/data/a**/b"],
    "mode": ["", "both"],
    "topic": [""],
    "format": ["yaml"],
    "encoding": ["utf-16", "none"],
    "complete.when": ["eof"],
    "after.read": ["move", "tag"],
    "after.read.folder": ["/out"],
    "rotated.close.ms": ["100"],
    "csv.delimiter": [";"],
    "csv.types": ["id:int32"],
    "fixed.columns": ["id:8"],
    "fixed.null": [""],
    "xml.record": ["order"],
    "multiline.start": ["^x"],
    "record.max.bytes": ["1000"],
    "batch.size": ["0"],
}


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, values in BAD.items() for value in values])
def test_a_bad_value_is_refused_by_the_key_to_change(key: str, value: str) -> None:
    found = FolderSourceConnector.check({**GOOD, key: value})
    wrong = [name for name, each in found.items() if each.errors]
    other = {("after.read", "move"): "after.read.folder"}
    assert wrong == [other.get((key, value), key)]
    with pytest.raises(ConfigError):
        options({**GOOD, key: value})


_BY_FIELD = {**GOOD, "format": "json", "airflow.interval.time": "record", "airflow.interval.field": "at"}


@pytest.mark.parametrize(
    ("more", "wrong"),
    [
        ({}, []),
        ({"after.read": "delete"}, ["after.read"]),
        ({"path.time.format": "%Y-%m-%d"}, ["path.time.format"]),
        *(({"format": each}, ["format"]) for each in ("lines", "multiline", "whole")),
    ],
)
def test_records_with_a_field_for_their_times_are_of_files_that_stay(more: dict[str, str], wrong: list[str]) -> None:
    found = FolderSourceConnector.check({**_BY_FIELD, **more})
    assert [name for name, each in found.items() if each.errors and "airflow.interval.field" in each.errors[0]] == wrong


@pytest.mark.parametrize(
    ("more", "is_good"),
    [
        ({"format": "csv", "csv.delimiter": r"\t", "csv.columns": "a, b"}, True),
        ({"format": "csv", "csv.delimiter": ",", "csv.quote": ","}, False),
        ({"format": "csv", "csv.columns": "a,a"}, False),
        ({"format": "csv", "csv.delimiter": "ab"}, False),
        ({"format": "multiline", "multiline.start": "("}, False),
        ({"format": "json", "encoding": "latin-1"}, False),
        ({"format": "csv", "encoding": "latin-1"}, True),
        ({"format": "csv", "csv.types": "id:int64, price : decimal(10, 2),a:b:date"}, True),
        ({"format": "csv", "csv.types": "id:int64,price:decimal(10,2)", "csv.columns": "price,x,id"}, True),
        ({"format": "csv", "csv.types": "id:int64,price:decimal(10,2)", "csv.columns": "price,x"}, False),
        ({"format": "csv", "csv.types": "id:int64,id:date"}, False),
        ({"format": "csv", "csv.types": "id:int"}, False),
        ({"format": "csv", "csv.types": "id"}, False),
        ({"format": "csv", "csv.types": "price:decimal(10,2"}, False),
        ({"format": "fixed"}, False),
        ({"format": "fixed", "fixed.columns": "id:8, name:30", "fixed.null": "", "encoding": "latin-1"}, True),
        ({"format": "fixed", "fixed.columns": "id:8,id:30"}, False),
        ({"format": "fixed", "fixed.columns": "id:0"}, False),
        ({"format": "fixed", "fixed.columns": "id"}, False),
        ({"format": "fixed", "fixed.columns": ":8"}, False),
        ({"format": "fixed", "fixed.columns": "id:٣"}, False),
        ({"format": "fixed", "fixed.columns": "id:8", "mode": "logs"}, True),
        ({"format": "json-array"}, True),
        ({"format": "json-array", "encoding": "latin-1"}, False),
        ({"format": "json-array", "mode": "logs"}, False),
        ({"format": "xml"}, False),
        ({"format": "xml", "xml.record": "p:order"}, True),
        ({"format": "xml", "xml.record": "order", "encoding": "latin-1"}, False),
        ({"format": "xml", "xml.record": "order", "mode": "logs"}, False),
        ({"format": "xml", "xml.record": "<order>"}, False),
        ({"format": "xml", "xml.record": "a:b:c"}, False),
        ({"mode": "LOGS"}, False),
        ({"mode": "logs", "format": "whole"}, False),
        ({"mode": "logs", "after.read": "delete"}, False),
        ({"mode": "logs", "rotated.close.ms": "5000"}, True),
        ({"paths": "s3://a/x/*.csv,s3://b/**", "aws.access.key.id": "k", "aws.secret.access.key": "s"}, True),
        ({"paths": "s3://a/x", "mode": "logs"}, False),
        ({"paths": "s3://a/x,gs://a/x"}, False),
        ({"paths": "s3://a/x", "after.read": "move", "after.read.folder": "/done"}, False),
        ({"paths": "s3://a/x", "after.read": "move", "after.read.folder": "s3://b/done"}, True),
        ({"paths": "sftp://u:hunter2@host/a"}, False),
        ({"paths": "sftp://u@host:port/a"}, False),
        ({"paths": "sftp://u@host:99999/a"}, False),
        ({"paths": "sftp://u@host"}, False),
        ({"paths": "hdfs://[::1/a"}, False),
        ({"paths": "hdfs://host:9000"}, False),
        ({"paths": "s3://"}, False),
        ({"paths": "/d/in/**", "after.read": "move", "after.read.folder": "/d"}, False),
        ({"paths": "/d/in/**", "after.read": "move", "after.read.folder": "/d/../e"}, False),
        ({"paths": "/d/in/**", "after.read": "move", "after.read.folder": "/d/in/done"}, True),
        ({"paths": "/d/in/**", "after.read": "move", "after.read.folder": "/d/i"}, True),
        ({"paths": "abfs://c@a.dfs.core.windows.net/x,abfss://c@a.dfs.core.windows.net/y"}, False),
        ({"paths": "s3://a/x", "hadoop.conf.dir": "/etc/hadoop"}, False),
        ({"paths": "/data", "s3.region": "us-east-1"}, False),
        ({"paths": "hdfs://one:8020/x,hdfs://two:8020/x"}, False),
        ({"paths": "hdfs:///x", "hadoop.conf.dir": "/etc/hadoop"}, True),
        ({"paths": "s3://a/x", "after.read": "tag"}, True),
        ({"paths": "s3://a/x", "after.read": "tag", "after.read.tag": "a b/ü=x=y"}, True),
        ({"paths": "s3://a/x", "after.read": "tag", "after.read.tag": "state="}, True),
        ({"paths": "s3://a/x", "after.read": "tag", "after.read.tag": "state"}, False),
        ({"paths": "s3://a/x", "after.read": "tag", "after.read.tag": "aws:a=b"}, False),
        ({"paths": "s3://a/x", "after.read": "tag", "after.read.tag": "a,b=c"}, False),
        ({"paths": "s3://a/x", "after.read.tag": "a=b"}, False),
        ({"paths": "gs://a/x", "after.read": "tag"}, False),
        ({"paths": "sftp://u@host/a", "after.read": "tag"}, False),
        ({"paths": "s3://a/x/**", "listing.order": "ascending", "listing.whole.interval.ms": "5"}, True),
        ({"paths": "s3://a/x/**", "listing.whole.interval.ms": "5"}, False),
        ({"paths": "s3://a*/x/**", "listing.order": "ascending"}, False),
        ({"paths": "gs://a/x/**", "listing.order": "ascending"}, False),
        ({"paths": "/data", "listing.order": "ascending"}, False),
        ({"paths": "/data", "listing.order": "any"}, False),
        ({"paths": "s3://a/x", "notifications.sqs.queue.url": "https://sqs.eu-central-1.amazonaws.com/123/new"}, True),
        ({"paths": "s3://a/x", "notifications.sqs.queue.url": "arn:aws:sqs:eu-central-1:123:new"}, False),
        ({"paths": "gs://a/x", "notifications.sqs.queue.url": "https://sqs.eu-central-1.amazonaws.com/123/new"}, False),
        ({"mode": "logs", "notifications.sqs.queue.url": "https://sqs.eu-central-1.amazonaws.com/123/new"}, False),
        ({"paths": "abfs://c@a.dfs.core.windows.net/x", "azblob.account.key": "k"}, True),
        ({"paths": "abfs://c@a.dfs.core.windows.net/x,abfs://d@a.dfs.core.windows.net/x"}, False),
    ],
)
def test_combinations(more: dict[str, str], *, is_good: bool) -> None:
    found = FolderSourceConnector.check({**GOOD, **more})
    assert any(each.errors for each in found.values()) is not is_good
    assert "hunter2" not in str([each.errors for each in found.values()])


@pytest.mark.parametrize(
    ("path", "inner"),
    [
        ("s3://bucket/a/b.csv", "bucket/a/b.csv"),
        ("gs://bucket/a/b.csv", "bucket/a/b.csv"),
        ("hdfs://host:8020/a/b.csv", "/a/b.csv"),
        ("hdfs:///a/b.csv", "/a/b.csv"),
        ("abfs://container@account.dfs.core.windows.net/a/b.csv", "container/a/b.csv"),
    ],
)
def test_the_paths_of_a_storage(path: str, inner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Store, "remote", lambda _: None)
    storage = options({**GOOD, "paths": path}).storage()
    assert isinstance(storage, RemoteStorage)
    assert storage.inner(path) == inner


def test_the_scan_of_a_remote_storage_is_rarer() -> None:
    assert (options(GOOD).scan_seconds, options({**GOOD, "paths": "s3://b/a"}).scan_seconds) == (1, 10)
    assert options({**GOOD, "paths": "s3://b/a", "scan.interval.ms": "50"}).scan_seconds == 0.05


def test_each_task_has_its_share() -> None:
    connector = FolderSourceConnector()
    connector.start(GOOD)
    assert [each["sluiceway.folder.task"] for each in connector.task_configs(3)] == ["0", "1", "2"]
    assert connector.exactly_once_support(GOOD) is ExactlyOnceSupport.SUPPORTED


def test_a_preview_does_not_start_what_moves_files() -> None:
    assert FolderSourceConnector.start_effects(GOOD) == ""
    s3 = {**GOOD, "paths": "s3://a/x"}
    assert "tags" in FolderSourceConnector.start_effects({**s3, "after.read": "tag"})
    assert "queue" in FolderSourceConnector.start_effects({**s3, "notifications.sqs.queue.url": "http://localhost:1/1/a"})
    assert "moves or deletes" in FolderSourceConnector.start_effects({**GOOD, "after.read": "delete"})


@pytest.mark.parametrize(
    ("partition", "offset"),
    [
        ({}, None),
        ({"file": 5}, None),
        ({"file": "/a"}, {**IDENTITY, "position": -1}),
        ({"file": "/a"}, {**IDENTITY, "head_crc": "5"}),
    ],
)
def test_offsets_that_no_task_can_start_from_are_refused(partition: dict[str, object], offset: dict[str, object] | None) -> None:
    with pytest.raises(ConnectError):
        FolderSourceConnector().alter_offsets(GOOD, [(partition, offset)])


def test_offsets_of_tasks_are_accepted() -> None:
    stored = [({"file": "/a"}, IDENTITY), ({"file": "/b"}, None)]
    assert FolderSourceConnector().alter_offsets(GOOD, stored)
