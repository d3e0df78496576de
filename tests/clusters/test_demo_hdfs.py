"""`make demo-hdfs` and `make down`."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import psutil
import pytest

from sluiceway.stack import leftovers
from sluiceway.stack.up import down
from support.guard import Guard
from support.stack import end

ROOT = Path(__file__).parents[2]


@pytest.fixture
def demo(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "tools")
    return importlib.import_module("demo_hdfs")


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_hourly_folders_on_hdfs_are_queried_and_down_ends_everything(demo: ModuleType, tmp_path: Path) -> None:
    home, said = tmp_path / "stack", list[str]()
    guard = Guard(end, home)
    try:
        _, rows = demo.run(home, said.append)
        hours = [row[0] for row in rows]
        assert hours == [f"2026-01-05 {hour:02}h" for hour in range(6, 12)]
        assert [row[1] for row in rows] == [3600, 3600, 3600, 3600, 3600, 2000]
        running = leftovers.marked(home)
        assert sum("NameNode" in " ".join(each.cmdline()) for each in running) == 1
        down(said.append, home=home)
        assert not leftovers.marked(home)
        assert not [each for each in running if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]
    finally:
        guard.close()
    assert any("slowest" in line for line in said)
