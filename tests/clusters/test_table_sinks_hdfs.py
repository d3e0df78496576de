"""Iceberg and Delta tables in a real HDFS, read and written without Java."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sluiceway.api import TopicPartition
from support.clusters.hadoop import Hdfs
from support.jdbc_sink import person
from support.table_sink import Lake, Task

pytestmark = pytest.mark.clusters

P0 = TopicPartition("people", 0)


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    made = Hdfs(tmp_path_factory.mktemp("hdfs"), nodes=1)
    try:
        made.start()
        made.await_ready()
        yield made
    finally:
        made.stop()


@pytest.fixture(params=["iceberg", "delta"])
def lake(request: pytest.FixtureRequest, hdfs: Hdfs, tmp_path: Path) -> Lake:
    return Lake(request.param, tmp_path, url=f"{hdfs.url}/{tmp_path.name}")


def put(lake: Lake, first: int, end: int) -> None:
    """Write records to the table in a task of its own."""
    task = Task(lake, lake.config(), [P0])
    task.put(*(person(number, number, f"n{number}") for number in range(first, end)))
    assert task.commit(end) == {P0: end}
    task.task.stop()


@pytest.mark.long
def test_each_record_is_a_row_once(lake: Lake) -> None:
    put(lake, 0, 10)
    put(lake, 10, 20)
    assert sorted(row["id"] for row in lake.rows(lake.config())) == list(range(20))
    assert lake.table(lake.config()).offset(P0) == 20


@pytest.mark.long
def test_a_sweep_deletes_uncommitted_files_by_age(lake: Lake) -> None:
    put(lake, 0, 10)
    known, table = lake.files(), lake.table(lake.config())
    table.stage(lake.read(lake.config()))
    orphan = lake.files() - known
    assert len(orphan) == 1
    assert table.sweep(3600) == 0
    time.sleep(0.01)
    assert table.sweep(-60) == 1
    assert lake.files() == known
