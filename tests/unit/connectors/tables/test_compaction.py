"""Compaction of tables by the compaction connectors, beside a sink."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sluiceway.api import TopicPartition
from sluiceway.connectors.tables.compaction import HISTORY_AGE_MS, MIN_FILES
from support.jdbc_sink import person, tombstone
from support.table_sink import Lake, Task, compact, compaction

PEOPLE = TopicPartition("people", 0)
UPSERT = {"tables_upsert-mode-enabled": "true", "tables_default-id-columns": "id"}


@pytest.fixture(params=["iceberg", "delta"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    return Lake(request.param, tmp_path)


def files(lake: Lake, task: Task) -> int:
    """Return the number of data files in the table."""
    table = lake.table(task.config)._table
    return len(list(table.scan().plan_files())) if lake.format == "iceberg" else len(table.file_uris())


def sink(lake: Lake, commits: int, **more: str) -> Task:
    """Return a task that has made a commit of one row for each number."""
    task = Task(lake, lake.config(**more), [PEOPLE])
    for number in range(commits):
        task.put(person(number, number, f"ö/ {number % 2}"))
        task.commit(number + 1)
    return task


def ids(task: Task) -> list[int]:
    return sorted(row["id"] for row in task.rows())


def test_small_files_are_merged_and_the_sink_goes_on(lake: Lake) -> None:
    task = sink(lake, 6)
    assert files(lake, task) == 6
    compact(lake)
    assert files(lake, task) == 1
    assert ids(task) == list(range(6))
    assert lake.table(task.config).offset(PEOPLE) == 6
    task.put(person(6, 6, "after"))
    assert task.commit(7) == {PEOPLE: 7}
    assert ids(task) == list(range(7))
    compact(lake)
    assert files(lake, task) == 2  # too few to be merged


def test_files_of_other_partitions_are_not_merged_with_each_other(lake: Lake) -> None:
    task = sink(lake, 8, **{"tables_default-partition-by": "name"})
    compact(lake, **{MIN_FILES: "4"})
    assert files(lake, task) == 2
    assert sorted((row["id"], row["name"]) for row in task.rows()) == [(n, f"ö/ {n % 2}") for n in range(8)]


def test_a_commit_of_the_sink_comes_first(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    if lake.format == "delta":
        pytest.skip("delta-rs's optimize is one call")
    task = sink(lake, 6, **UPSERT)
    table = lake.table(task.config)
    replace, calls = type(table)._replace, []

    def after_the_sink(self: Any, *args: Any) -> None:
        calls.append(args)
        if len(calls) == 1:
            task.put(tombstone(6, 3))
            task.commit(7)
        replace(self, *args)

    monkeypatch.setattr(type(table), "_replace", after_the_sink)
    before = lake.files()
    assert table.compact(2**20, 2) == 0  # the deletion rewrote one of the files
    assert ids(task) == [0, 1, 2, 4, 5]
    assert lake.files() <= before  # the merged file was deleted
    assert table.compact(2**20, 2) == 5
    assert ids(task) == [0, 1, 2, 4, 5]


def test_an_append_of_the_sink_does_not_prevent_it(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    task = sink(lake, 6)
    task.put(person(6, 6, "later"))
    stale = lake.table(task.config)
    task.commit(7)
    monkeypatch.setattr(stale, "reload", monkeypatch.undo)  # so that it starts from the older table
    assert stale.compact(2**20, 2) == 6
    assert ids(task) == list(range(7))


def test_old_snapshots_are_expired(lake: Lake) -> None:
    task = sink(lake, 6)
    compact(lake)
    lake.table(task.config).expire(0)
    assert ids(task) == list(range(6))
    if lake.format == "iceberg":
        assert len(lake.table(task.config)._table.metadata.snapshots) == 1
        assert lake.table(task.config).sweep(-60) == 6
    left = [path for path in lake.folder.rglob("*.parquet") if "metadata" not in path.parts]
    assert len(left) == 1
    assert ids(task) == list(range(6))


def test_a_table_that_does_not_exist_yet(lake: Lake) -> None:
    compact(lake)


def test_a_history_shorter_than_uncommitted_files_live_is_an_error(lake: Lake) -> None:
    found = compaction(lake).validate({**lake.config("compaction"), HISTORY_AGE_MS: "3600000"})
    [error] = found[HISTORY_AGE_MS].errors
    assert "must be at least sluiceway.orphans.age.ms" in error
