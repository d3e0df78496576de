"""Compaction processes that are killed while a sink writes to the same table."""

from __future__ import annotations

import multiprocessing
import random
import time
from pathlib import Path
from typing import Any

import pytest

from sluiceway.api import TopicPartition
from sluiceway.connectors.delta import DeltaCompactionConnector
from sluiceway.connectors.iceberg import IcebergCompactionConnector
from sluiceway.connectors.tables.compaction import INTERVAL_MS, MIN_FILES
from sluiceway.errors import RetriableError
from support.eventually import eventually
from support.jdbc_sink import person
from support.table_sink import Lake, Task

KILLS = 4
COMMITS_BETWEEN = 8


@pytest.fixture(params=["iceberg", "delta"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    return Lake(request.param, tmp_path)


def compact(config: dict[str, str], polls: int = 0) -> None:
    """Run a compaction's task for a number of polls; 0 is without end."""
    connector = IcebergCompactionConnector if config["connector.class"] == "IcebergSink" else DeltaCompactionConnector
    task: Any = connector.task_class()
    task.start(config)
    while True:
        try:
            task.poll()
        except RetriableError:  # the runtime polls again
            continue
        polls -= 1
        if polls == 0:
            return


def files(lake: Lake, config: dict[str, str]) -> int:
    table = lake.table(config)._table
    return len(list(table.scan().plan_files())) if lake.format == "iceberg" else len(table.file_uris())


def merged(lake: Lake) -> set[str]:
    """Return the data files that are not the sink's."""
    found = lake.folder.rglob("*.parquet")
    return {path.name for path in found if not path.name.startswith("sluiceway-sink-") and "metadata" not in path.parts}


@pytest.mark.long
def test_kills_while_a_sink_writes_change_no_row(lake: Lake, chance: random.Random) -> None:
    task = Task(lake, lake.config(), [TopicPartition("people", 0)])
    config = {**lake.config("compaction"), MIN_FILES: "2", INTERVAL_MS: "0"}
    context, count = multiprocessing.get_context("spawn"), 0

    def commit() -> None:
        nonlocal count
        task.put(person(count, count, "a"))
        count += 1
        task.commit(count)

    for _ in range(KILLS):
        known = merged(lake)
        process = context.Process(target=compact, args=(config,), daemon=True)
        process.start()
        try:
            for _ in range(COMMITS_BETWEEN):
                commit()
            eventually(lambda known=known: merged(lake) - known, what="a merged file")
            for _ in range(COMMITS_BETWEEN):
                commit()
            time.sleep(chance.uniform(0, 0.1))  # kill it at a random point
        finally:
            process.kill()
            process.join()
    before = files(lake, config)
    compact(config, polls=1)
    assert files(lake, config) < max(before, 3)
    assert sorted(row["id"] for row in task.rows()) == list(range(count))
    assert lake.table(task.config).offset(TopicPartition("people", 0)) == count
    task.task.stop()
