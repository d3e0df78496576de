"""File sinks with servers of the protocols of Google Cloud Storage and Azure Blob Storage."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow.parquet as pq
import pytest

from sluiceway.api import TopicPartition
from sluiceway.connectors.files.commit_log import CommitLog
from sluiceway.connectors.files.connector import AZURE, GCS
from sluiceway.connectors.files.filesystem.objects import ObjectStore
from sluiceway.connectors.files.options import FileOptions
from sluiceway.discovery import connector_class
from sluiceway.errors import FencedError
from support.azure_server import ACCOUNT, KEY, azure_server
from support.file_sinks import TOPIC, FileSink, rows
from support.gcs_server import gcs_server

pytestmark = pytest.mark.long
P0 = TopicPartition(TOPIC, 0)
BUCKET = "lake"
CONFIGS = {
    "gcs": {
        "connector.class": "io.confluent.connect.gcs.GcsSinkConnector",
        "storage.class": "io.confluent.connect.gcs.storage.GcsStorage",
        "gcs.bucket.name": BUCKET,
        "gcs.credentials.path": "anon",  # gcsfs takes it for no login
    },
    "azure": {
        "connector.class": "io.confluent.connect.azure.blob.AzureBlobStorageSinkConnector",
        "azblob.container.name": BUCKET,
        "azblob.account.name": ACCOUNT,
        "azblob.account.key": KEY,
    },
}
SERVERS = {"gcs": gcs_server, "azure": azure_server}


@dataclass(frozen=True)
class Cloud:
    """A server: its name, its file system by fsspec, and the config of a sink."""

    name: str
    files: Any
    config: dict[str, str]

    def store(self) -> Any:
        return FileOptions.of(self.config, GCS if self.name == "gcs" else AZURE).store.connect()

    def found(self) -> dict[str, list[int]]:
        """Return the ids in each object."""
        return {
            path.rpartition("/")[2]: [each["id"] for each in pq.read_table(io.BytesIO(self.files.cat_file(path))).to_pylist()]
            for path in sorted(self.files.find(f"{BUCKET}/{self.config['topics.dir']}"))
        }


@pytest.fixture(scope="module", params=["gcs", "azure"])
def server(request: pytest.FixtureRequest) -> Iterator[tuple[str, Any]]:
    with SERVERS[request.param](BUCKET) as files:
        yield request.param, files


@pytest.fixture
def cloud(server: tuple[str, Any], request: pytest.FixtureRequest) -> Cloud:
    name, files = server
    folder = "".join(char if char.isalnum() else "-" for char in request.node.name)
    keys = {"topics.dir": folder, "logs.dir": f"logs-{folder}", "flush.size": "100", "format.class": "ParquetFormat"}
    return Cloud(name, files, {**CONFIGS[name], **keys})


def test_objects_hold_each_record_once(cloud: Cloud) -> None:
    sink = FileSink(cloud.config, [P0])
    sink.put(rows(0, 250), columns=True)
    assert sink.commit() == {P0: 200}
    sink.task.stop()
    sink = FileSink(cloud.config, [P0])
    assert sink.next == {P0: 200}
    sink.put(rows(200, 260))
    assert sink.end() == {P0: 260}
    expected = {
        f"{TOPIC}+0+{first:010d}.snappy.parquet": list(range(first, end)) for first, end in [(0, 100), (100, 200), (200, 260)]
    }
    assert cloud.found() == expected


@pytest.mark.parametrize("point", ["planned", "copied"])
def test_a_commit_that_was_interrupted_is_finished(cloud: Cloud, point: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Killed(BaseException):
        pass

    def dying(*_: Any) -> None:
        raise Killed

    sink = FileSink(cloud.config, [P0])
    with monkeypatch.context() as patch:
        if point == "planned":
            patch.setattr(CommitLog, "publish", dying)
        else:
            patch.setattr(ObjectStore, "_remove", dying)
        with pytest.raises(Killed):
            sink.put(rows(0, 100))
    again = FileSink(cloud.config, [P0])
    assert again.next == {P0: 100}
    again.end()
    assert cloud.found() == {f"{TOPIC}+0+0000000000.snappy.parquet": list(range(100))}
    assert not [path for path in cloud.files.find(f"{BUCKET}/{cloud.config['logs.dir']}") if path.endswith(".tmp")]


def test_only_one_of_two_writers_commits(cloud: Cloud) -> None:
    fs = cloud.store()
    first, second = CommitLog(fs, f"{BUCKET}/race"), CommitLog(fs, f"{BUCKET}/race")
    known = first.append(None, epoch=0, end=1)
    second.append(known, epoch=0, end=2)
    with pytest.raises(FencedError):
        first.append(known, epoch=0, end=3)
    newest = second.newest()
    assert newest is not None
    assert newest.end == 2


def test_an_upload_in_parts_and_an_upload_that_ends_early(cloud: Cloud) -> None:
    fs = ObjectStore(*_arguments(cloud), 5 * 1024 * 1024)
    whole, half = fs.open(f"{BUCKET}/parts/whole.tmp"), fs.open(f"{BUCKET}/parts/half.tmp")
    whole.write(b"x" * 12_000_000)
    half.write(b"x" * 12_000_000)
    whole.finish()
    half.abort()
    assert fs.names(f"{BUCKET}/parts") == ["whole.tmp"]
    assert len(fs.read(f"{BUCKET}/parts/whole.tmp")) == 12_000_000


def _arguments(cloud: Cloud) -> tuple[str, Any]:
    store = FileOptions.of(cloud.config, GCS if cloud.name == "gcs" else AZURE).store
    return store.scheme, store.options


def test_validation_names_a_missing_bucket(cloud: Cloud) -> None:
    connector = connector_class(cloud.config["connector.class"])
    assert not [each.errors for each in connector.validate(cloud.config).values() if each.errors]
    key = "gcs.bucket.name" if cloud.name == "gcs" else "azblob.container.name"
    errors = {name: each.errors for name, each in connector.validate({**cloud.config, key: "nosuch"}).items() if each.errors}
    assert list(errors) == [key]
    assert "there is no bucket nosuch" in errors[key][0]


def test_a_path_names_bucket_and_folder(cloud: Cloud) -> None:
    paths = {"gcs": f"gs://{BUCKET}/folder", "azure": f"abfs://{BUCKET}@{ACCOUNT}.dfs.core.windows.net/folder"}
    login = {key: value for key, value in cloud.config.items() if key.startswith(("gcs.cred", "azblob.account"))}
    sink = FileSink({"connector.class": "ParquetSink", "path": paths[cloud.name], "flush.size": "10", **login}, [P0])
    sink.put(rows(0, 10))
    assert sink.end() == {P0: 10}
    assert cloud.files.find(f"{BUCKET}/folder/topics") == [
        f"{BUCKET}/folder/topics/{TOPIC}/partition=0/{TOPIC}+0+0000000000+0000000009.parquet"
    ]
