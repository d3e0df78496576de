"""File sinks on an HDFS that requires Kerberos: login by keytab, encrypted calls and data."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from sluiceway.api import TopicPartition
from sluiceway.connectors.files.filesystem.hdfs import HdfsFileSystem, HdfsLogin
from sluiceway.discovery import connector_class
from support.clusters.daemons import running
from support.clusters.hadoop import Hdfs
from support.clusters.hdfs_kerberos import PRINCIPAL, Kdc, secure_hdfs
from support.file_sinks import TOPIC, FileSink, rows

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

P0 = TopicPartition(TOPIC, 0)


@pytest.fixture(scope="module")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    with running(Kdc(tmp_path_factory.mktemp("kerberos") / "kdc")) as made:
        yield made


@pytest.fixture(scope="module", params=["authentication", "privacy"])
def hdfs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, kdc: Kdc) -> Iterator[Hdfs]:
    with running(secure_hdfs(tmp_path_factory.mktemp("hdfs-kerberos"), kdc, request.param)) as made:
        made.await_ready()
        yield made


@pytest.fixture
def config(hdfs: Hdfs, kdc: Kdc, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setenv("KRB5_CONFIG", str(kdc.config))
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{kdc.folder}/no-cache")
    return {
        "connector.class": "io.confluent.connect.hdfs.HdfsSinkConnector",
        "store.url": f"{hdfs.url}/lake",
        "hadoop.conf.dir": str(hdfs.conf),
        "hdfs.authentication.kerberos": "true",
        "connect.hdfs.principal": PRINCIPAL,
        "connect.hdfs.keytab": str(kdc.keytab),
        "format.class": "io.confluent.connect.hdfs.parquet.ParquetFormat",
        "flush.size": "100",
        "retry.backoff.ms": "100",
    }


def test_a_keytab_logs_in(hdfs: Hdfs, kdc: Kdc, config: dict[str, str]) -> None:
    sink = FileSink(config, [P0])
    sink.put(rows(0, 250))
    assert sink.end() == {P0: 250}
    fs = HdfsFileSystem(HdfsLogin(hdfs.url, str(hdfs.conf), PRINCIPAL, str(kdc.keytab)))
    folder = f"/lake/topics/{TOPIC}/partition=0"
    found = [
        each["id"] for name in fs.names(folder) for each in pq.read_table(io.BytesIO(fs.read(f"{folder}/{name}"))).to_pylist()
    ]
    assert sorted(found) == list(range(250))


def test_validation_names_the_login(config: dict[str, str], tmp_path: Path) -> None:
    connector = connector_class(config["connector.class"])
    assert not [each.errors for each in connector.validate(config).values() if each.errors]
    found = connector.validate({**config, "connect.hdfs.keytab": str(tmp_path / "missing.keytab")})
    wrong = {name: each.errors for name, each in found.items() if each.errors}
    print(wrong)
    assert wrong
