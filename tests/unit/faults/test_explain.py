"""What a failed test says of processes, connectors, and tasks."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluiceway.stack.process import BackgroundProcess
from support import explain
from support.engine import RunningTask
from support.engine_connectors import file_source
from support.eventually import eventually


def test_a_failure_shows_the_log_of_a_process_that_died(tmp_path: Path) -> None:
    process = BackgroundProcess("broken", ["sh", "-c", "echo no space left; exit 1"], tmp_path)
    process.start()
    eventually(lambda: not process.is_running())
    assert "broken has ended. The last lines of" in explain.report()
    assert "no space left" in explain.report()
    explain.forget()
    assert explain.report() == ""


def test_a_process_that_a_test_stops_has_not_died(tmp_path: Path) -> None:
    process = BackgroundProcess("whole", ["sleep", "3600"], tmp_path)
    process.start()
    process.stop()
    assert explain.report() == ""


def test_a_wait_in_vain_shows_the_tasks_of_the_test(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("a\n")
    with RunningTask(file_source("lines", "t", tmp_path / "in"), {"bootstrap.servers": "127.0.0.1:9"}) as task:
        with pytest.raises(AssertionError, match=r"rain did not come about within 0 s; last seen: None"):
            eventually(lambda: None, within=0, what="rain")
        assert f"task {task.spec.id}: [" in explain.report()
    explain.forget()
