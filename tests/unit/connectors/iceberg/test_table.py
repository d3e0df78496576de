"""The cost of a commit to an Iceberg table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table.update import update_table_metadata

from sluiceway.api import TopicPartition
from support.jdbc_sink import person
from support.table_sink import Lake, Task


def test_a_commit_copies_the_metadata_once_for_each_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake("iceberg", tmp_path)
    task = Task(lake, lake.config(), [TopicPartition("people", 0)])
    task.put(person(0, 0, "a"))
    task.commit(1)
    copies = []

    def update(*args: Any) -> Any:
        copies.append(args)
        return update_table_metadata(*args)

    monkeypatch.setattr("pyiceberg.table.update_table_metadata", update)
    task.put(person(1, 1, "b"))
    task.commit(2)
    task.task.stop()
    assert 0 < len(copies) <= 3
    assert sorted(row["id"] for row in task.rows()) == [0, 1]
