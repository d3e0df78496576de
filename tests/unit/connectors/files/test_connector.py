"""Keys, conflicts and checks of the file sinks, and the class names of Confluent's sinks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sluiceway.connectors.files.connector import HDFS, PARQUET, S3
from sluiceway.connectors.files.filesystem.hdfs import HdfsLogin
from sluiceway.connectors.files.options import FileOptions
from sluiceway.discovery import connector_class
from sluiceway.errors import ConfigError
from support.eventually import LIMIT

OWN = {"connector.class": "ParquetSink", "path": "/lake"}
HDFS_CONFIG = {
    "connector.class": "io.confluent.connect.hdfs.HdfsSinkConnector",
    "hdfs.url": "hdfs://namenode:8020/base/",
    "format.class": "io.confluent.connect.hdfs.parquet.ParquetFormat",
    "flush.size": "3",
}
S3_CONFIG = {
    "connector.class": "io.confluent.connect.s3.S3SinkConnector",
    "s3.bucket.name": "bucket",
    "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
    "flush.size": "3",
}


def errors(config: dict[str, str], **more: str) -> dict[str, list[str]]:
    """Return the errors of validation; keyword arguments are keys with underscores for dots."""
    config = config | {name.replace("_", "."): value for name, value in more.items()}
    found = connector_class(config["connector.class"]).validate(config)
    return {name: each.errors for name, each in found.items() if each.errors}


@pytest.mark.parametrize(
    "name",
    [
        "io.confluent.connect.hdfs.HdfsSinkConnector",
        "io.confluent.connect.hdfs3.Hdfs3SinkConnector",
        "io.confluent.connect.s3.S3SinkConnector",
        "io.confluent.connect.gcs.GcsSinkConnector",
        "io.confluent.connect.azure.blob.AzureBlobStorageSinkConnector",
        *("ParquetSink", "OrcSink", "AvroFileSink", "CsvSink", "JsonFileSink", "TextSink", "S3Sink", "HdfsSinkConnector"),
    ],
)
def test_class_names(name: str) -> None:
    cls = connector_class(name)
    assert cls.java_class in (name, None) or name in (cls.java_class.rpartition(".")[2], cls.__name__.removesuffix("Connector"))


def test_an_own_sink_needs_only_a_path(tmp_path: Path) -> None:
    assert errors(OWN, path=str(tmp_path)) == {}
    options = FileOptions.of(OWN, PARQUET)
    assert (options.names.topics_dir, options.logs_dir, options.store.root) == ("/lake/topics", "/lake/_sluiceway", "/lake")
    assert (options.limits.records, options.limits.schedule) == (100_000, 600_000)


def test_confluents_keys_keep_their_meaning() -> None:
    hdfs = FileOptions.of(HDFS_CONFIG, HDFS)
    assert (hdfs.store.scheme, hdfs.names.topics_dir, hdfs.logs_dir) == ("hdfs", "/base/topics", "/base/logs")
    assert isinstance(hdfs.store.login, HdfsLogin)
    assert hdfs.store.login.url == "hdfs://namenode:8020"
    assert (hdfs.names.with_last, hdfs.limits.interval, hdfs.limits.schedule) == (True, None, None)
    s3 = FileOptions.of({**S3_CONFIG, "s3.compression.type": "gzip", "aws.secret.access.key": "hidden-one"}, S3)
    assert (s3.format, s3.names.topics_dir, s3.names.with_last) == ("JsonFormat", "bucket/topics", False)
    assert s3.format_options["compression.type"] == "gzip"
    assert "hidden-one" not in repr(s3)


@pytest.mark.parametrize("config", [HDFS_CONFIG, S3_CONFIG])
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("partitioner.class", "com.example.MyPartitioner"),
        ("partitioner.class", "com.example.DefaultPartitioner"),
        ("timestamp.extractor", "com.example.Extractor"),
        ("format.class", "com.example.ParquetFormat"),
        ("format.class", "ThriftFormat"),
        ("schema.compatibility", "TRANSITIVE"),
        ("behavior.on.null.values", "write"),
        ("store.kafka.keys", "true"),
        ("topics.dir", "${topic}"),
        ("flush.size", "0"),
        ("rotate.interval.ms", "0"),
        ("timezone", "Mars/Base"),
        ("path.format", "xxxx"),
        ("directory.delim", "\\"),
    ],
)
def test_what_cannot_be_kept_is_refused_at_its_key(config: dict[str, str], key: str, value: str) -> None:
    assert list(errors({**config, key: value})) == [key]


@pytest.mark.parametrize(
    ("config", "key", "value"),
    [
        (HDFS_CONFIG, "storage.class", "com.example.Storage"),
        (HDFS_CONFIG, "topic.capture.groups.regex", "(.*)"),
        (HDFS_CONFIG, "hdfs.url", "http://namenode"),
        (S3_CONFIG, "s3.wan.mode", "true"),
        (S3_CONFIG, "s3.proxy.url", "http://proxy"),
        (S3_CONFIG, "s3.credentials.provider.class", "com.example.Provider"),
        (S3_CONFIG, "s3.part.size", "1"),
    ],
)
def test_keys_of_one_storage(config: dict[str, str], key: str, value: str) -> None:
    found = errors({**config, key: value})
    assert list(found) == ["store.url" if key == "hdfs.url" else key]


def test_partitioners_need_their_keys() -> None:
    assert list(errors(OWN, partitioner_class="FieldPartitioner")) == ["partition.field.name"]
    needed = errors(HDFS_CONFIG, partitioner_class="TimeBasedPartitioner")
    assert list(needed) == ["partition.duration.ms", "path.format", "timezone"]
    german = {"path_format": "MMM", "locale": "de", "partition_duration_ms": "1000"}
    assert list(errors(OWN, partitioner_class="TimeBasedPartitioner", **german)) == ["locale"]
    assert list(errors(S3_CONFIG, rotate_schedule_interval_ms="1000")) == ["timezone"]
    with pytest.raises(ConfigError, match=r"partition\.field\.name"):
        FileOptions.of({**OWN, "partitioner.class": "FieldPartitioner"}, PARQUET)


@pytest.mark.parametrize("path", ["relative/folder", "file://relative", "ftp://host/x", ""])
def test_paths(path: str) -> None:
    assert list(errors(OWN, path=path)) == ["path"]


def test_validation_tries_the_path(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert "is not a folder" in errors(OWN, path=str(tmp_path / "file"))["path"][0]
    assert errors(OWN, path=str(tmp_path / "new/folder")) == {}
    assert not (tmp_path / "new").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_to(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert "Let the user that runs the task do so" in errors(OWN, path=str(tmp_path))["path"][0]


def test_a_secret_is_not_shown() -> None:
    found = connector_class("S3Sink").config_def()["aws.secret.access.key"]
    assert found.type.value == "PASSWORD"


def test_a_storage_that_does_not_answer_is_no_error_of_the_config(monkeypatch: pytest.MonkeyPatch) -> None:
    from threading import Event

    from sluiceway.connectors.files import store_check
    from sluiceway.connectors.files.filesystem.local import LocalFileSystem

    answer = Event()
    monkeypatch.setattr(LocalFileSystem, "check", lambda *_: answer.wait(LIMIT))
    monkeypatch.setattr(store_check, "_CHECK_SECONDS", 0.05)
    assert errors(OWN) == {}
    answer.set()
