"""File sinks on an HDFS with two NameNodes: failovers lose and repeat nothing."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator

import pyarrow.parquet as pq
import pytest

from sluiceway.connectors.files.filesystem.hdfs import HdfsFileSystem, HdfsLogin
from sluiceway.connectors.files.keys import HADOOP_CONF_DIR
from support.clusters.daemons import running
from support.clusters.hdfs_ha import HaHdfs
from support.engine import RunningTask
from support.eventually import eventually
from support.file_sinks import row
from support.jdbc_sink import JSON, fill
from support.kafka import Kafka

pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]

COUNT = 2000


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HaHdfs]:
    with running(HaHdfs(tmp_path_factory.mktemp("hdfs-ha"))) as made:
        yield made


def written(hdfs: HaHdfs, topic: str) -> list[int]:
    """Return the ids in all committed files of a topic."""
    fs = HdfsFileSystem(HdfsLogin(hdfs.url, str(hdfs.conf)))
    folder = f"/lake/topics/{topic}/partition=0"
    return [
        each["id"] for name in fs.names(folder) for each in pq.read_table(io.BytesIO(fs.read(f"{folder}/{name}"))).to_pylist()
    ]


@pytest.mark.kafka
def test_failovers_lose_and_repeat_nothing(hdfs: HaHdfs, kafka_bootstrap: str, unique: Callable[[str], str]) -> None:
    topic, done = Kafka(kafka_bootstrap).create(unique("failover"), 1), 0
    keys = {
        "name": f"sink-{topic}",
        "connector.class": "ParquetSink",
        "topics": topic,
        "path": f"{hdfs.url}/lake",
        HADOOP_CONF_DIR: str(hdfs.conf),
        "flush.size": "70",
        "retry.backoff.ms": "200",
        **JSON,
    }

    def produce() -> None:
        nonlocal done
        fill(kafka_bootstrap, (row(number, topic=topic) for number in range(done, done + COUNT)))
        done += COUNT

    with RunningTask(keys, {"bootstrap.servers": kafka_bootstrap, "offset.flush.interval.ms": "500"}) as running:
        for _ in range(2):
            produce()
            eventually(lambda: len(written(hdfs, topic)) >= done - COUNT // 2, what="files before the failover")
            produce()
            hdfs.failover()
            eventually(lambda: len(written(hdfs, topic)) >= done - COUNT // 2, what="files after the failover")
        assert not running.stop().failed, running.result
    with RunningTask(keys, {"bootstrap.servers": kafka_bootstrap}, bounded=True) as running:
        assert not running.join().failed, running.result
    assert sorted(written(hdfs, topic)) == list(range(done))
