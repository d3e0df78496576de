"""The demo's shop: what its writer writes, its connectors' configs, and that `sluiceway down` ends it."""

from __future__ import annotations

import json
import random
import sqlite3
from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.herder.validation import validate_config
from sluiceway.stack import demo_shop, demo_writer, leftovers, up
from support.eventually import eventually

CHOOSE = random.Random(1)  # noqa: S311 (sample data)
AT = datetime(2026, 1, 5, 6, tzinfo=timezone.utc)


def rows(folder: Path) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(demo_writer.database_file(folder))) as database:
        return database.execute("SELECT * FROM orders ORDER BY id").fetchall()


def is_json(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def test_one_event_in_twenty_is_not_json() -> None:
    lines = [demo_writer.event(number, CHOOSE, AT) for number in range(1, 101)]
    assert [number for number, line in enumerate(lines, 1) if not is_json(line)] == [20, 40, 60, 80, 100]
    assert not any("\n" in line for line in lines)


def test_what_has_been_written_is_kept_and_continued(tmp_path: Path) -> None:
    for _ in range(2):
        demo_writer.prepare(tmp_path)
        for number in range(1, 5):
            demo_writer.write(tmp_path, number, CHOOSE)
    assert len(demo_writer.log_file(tmp_path).read_text().splitlines()) == 8
    assert [row[0] for row in rows(tmp_path)] == [1, 2, 3, 4]


def test_the_writer_ends_when_its_folder_is_gone(tmp_path: Path) -> None:
    demo_writer.main(tmp_path / "gone")


@pytest.mark.parametrize("name", [demo_shop.ORDERS, demo_shop.EVENTS, demo_shop.ARCHIVE])
def test_the_configs_are_valid(name: str, tmp_path: Path) -> None:
    demo_writer.prepare(tmp_path)
    worker = WorkerConfig.of({"bootstrap.servers": "localhost:9092", "group.id": "demo"})
    assert validate_config({"name": name, **demo_shop.connector_configs(tmp_path)[name]}, worker).errors == []


def test_down_ends_the_writer(tmp_path: Path) -> None:
    demo_writer.prepare(tmp_path / "demo")
    demo_shop.writer(tmp_path).start()
    try:
        eventually(lambda: rows(tmp_path / "demo"), what="an order")
        lines: list[str] = []
        up.ps(lines.append, home=tmp_path)
        assert [line.split()[2] for line in lines if line.startswith("demo-writer")] == ["running"]
        lines.clear()
        up.down(lines.append, home=tmp_path)
        assert "Ended demo-writer" in lines[-1]
        assert leftovers.marked(tmp_path) == []
    finally:
        demo_shop.writer(tmp_path).stop()
