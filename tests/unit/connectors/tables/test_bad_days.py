"""Table sinks whose storage is full, whose table others alter, and whose tables have unusual names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sluiceway.api import TopicPartition
from support.bad_storage import full_disk
from support.jdbc_sink import person
from support.table_sink import Lake, Task

PEOPLE = TopicPartition("people", 0)


@pytest.fixture(params=["iceberg", "delta"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    return Lake(request.param, tmp_path)


def put(task: Task, first: int, end: int) -> None:
    task.put(*(person(number, number, f"n{number}") for number in range(first, end)))


def by_id(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: int(row["id"]))


def test_a_full_disk_loses_and_repeats_nothing(lake: Lake) -> None:
    task = Task(lake, lake.config(), [PEOPLE])
    put(task, 0, 2)
    assert task.commit(2) == {PEOPLE: 2}
    put(task, 2, 4)
    with full_disk(100):
        assert task.commit(4) == {PEOPLE: 2}
    task.put()
    start = task.context.rewinds.get(PEOPLE, 4)
    assert start in (2, 4)
    put(task, start, 4)
    assert task.commit(4) == {PEOPLE: 4}
    assert [row["id"] for row in by_id(task.rows())] == [0, 1, 2, 3]
    task.task.stop()


def test_a_column_that_others_add_is_kept(lake: Lake) -> None:
    task = Task(lake, lake.config(), [PEOPLE])
    put(task, 0, 1)
    task.commit(1)
    table = lake.table(task.config)._table
    if lake.format == "iceberg":
        from pyiceberg.types import StringType

        with table.update_schema() as update:
            update.add_column("note", StringType())
    else:
        from deltalake.schema import Field, PrimitiveType

        table.alter.add_columns([Field("note", PrimitiveType("string"))])
    put(task, 1, 2)
    assert task.commit(2) == {PEOPLE: 2}
    assert by_id(task.rows()) == [{"id": number, "name": f"n{number}", "note": None} for number in range(2)]
    task.task.stop()


def test_a_column_that_others_rename_keeps_its_values(tmp_path: Path) -> None:
    lake = Lake("iceberg", tmp_path)
    task = Task(lake, lake.config(), [PEOPLE])
    put(task, 0, 1)
    task.commit(1)
    with lake.table(task.config)._table.update_schema() as update:
        update.rename_column("name", "title")
    put(task, 1, 2)
    assert task.commit(2) == {PEOPLE: 2}
    assert by_id(task.rows()) == [{"id": 0, "title": "n0"}, {"id": 1, "title": "n1"}]  # the task knew the column by its id
    task.task.stop()
    again = Task(lake, lake.config(), [PEOPLE])
    put(again, 2, 3)
    assert again.commit(3) == {PEOPLE: 3}
    assert by_id(again.rows())[2] == {"id": 2, "title": None, "name": "n2"}
    again.task.stop()


def test_rows_that_others_write_and_delete_are_left_alone(lake: Lake) -> None:
    task = Task(lake, lake.config(), [PEOPLE])
    put(task, 0, 2)
    task.commit(2)
    other = lake.table(task.config)._table
    if lake.format == "iceberg":
        other.delete("id = 0")
        other.append(pa.table({"id": [100], "name": ["other"]}, schema=other.schema().as_arrow()))
    else:
        import deltalake

        other.delete("id = 0")
        deltalake.write_deltalake(other, pa.table({"id": pa.array([100], pa.int64()), "name": ["other"]}), mode="append")
    put(task, 2, 3)
    assert task.commit(3) == {PEOPLE: 3}
    assert [row["id"] for row in by_id(task.rows())] == [1, 2, 100]
    task.task.stop()


@pytest.mark.parametrize("table", ["db.select", "db.größe", "db.ключ a"])
def test_reserved_words_and_unicode_in_the_names_of_tables(lake: Lake, table: str) -> None:
    task = Task(lake, lake.config(table=table), [PEOPLE])
    put(task, 0, 1)
    assert task.commit(1) == {PEOPLE: 1}
    again = Task(lake, lake.config(table=table), [PEOPLE])
    assert again.context.rewinds == {PEOPLE: 1}
    assert [row["id"] for row in again.rows(table)] == [0]
    for each in (task, again):
        each.task.stop()
