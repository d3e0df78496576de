"""Processes of a stack that have outlived the process that started them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from sluiceway.stack import leftovers
from sluiceway.stack.airflow import MARKER_VARIABLE
from support.eventually import LIMIT, eventually

_STUBBORN = """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open("ready", "w").close()
signal.pause()
"""


@pytest.fixture
def orphan(tmp_path: Path) -> Iterator[int]:
    """A process of a stack in a session of its own that ignores SIGTERM and whose parent has ended."""
    stubborn = tmp_path / "stubborn.py"
    stubborn.write_text(_STUBBORN)
    parent = (
        "import subprocess, sys\n"
        f"child = subprocess.Popen([sys.executable, {str(stubborn)!r}], start_new_session=True, stdout=subprocess.DEVNULL)\n"
        "print(child.pid)"
    )
    environment = {**os.environ, MARKER_VARIABLE: str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", parent], env=environment, cwd=tmp_path, stdout=subprocess.PIPE, text=True, check=True
    )
    pid = int(done.stdout)
    eventually(lambda: (tmp_path / "ready").exists())
    yield pid
    if leftovers.marked(tmp_path):
        os.kill(pid, signal.SIGKILL)


def test_a_process_without_parent_is_found_by_its_environment_and_ended(orphan: int, tmp_path: Path) -> None:
    assert [process.pid for process in leftovers.marked(tmp_path)] == [orphan]
    assert leftovers.marked(tmp_path / "other") == []
    assert leftovers.end_all(tmp_path, timeout=0.5) == 1
    assert leftovers.marked(tmp_path) == []


def test_a_task_without_a_driver_is_asked_to_end(tmp_path: Path) -> None:
    task = "exec -a 'airflow worker -- 1' sleep 600"
    scheduler = psutil.Popen(["bash", "-c", f"bash -c '({task.replace(chr(39), chr(34))}) & wait'; true"])
    try:
        eventually(lambda: _titles(scheduler).count("airflow worker -- 1 600") == 1, what="the task's process")
        assert leftovers.drain_drivers(tmp_path, 20, until=lambda: scheduler.poll() is not None, scheduler=scheduler.pid) == 0
        assert scheduler.wait(LIMIT) == 0
    finally:
        for each in [*scheduler.children(recursive=True), scheduler] if scheduler.is_running() else []:
            each.kill()


def test_a_task_whose_driver_has_drained_ends_before_it_starts_another_one(tmp_path: Path) -> None:
    """The stand-in of a task starts its driver again 0.6 s after each end, as an operator does."""
    driver = tmp_path / "driver_app.py"
    driver.write_text("import time\ntime.sleep(600)")
    starts = tmp_path / "starts"
    again = f"while true; do echo >> {starts}; {sys.executable} {driver}; sleep 0.6; done"
    task = f"exec -a 'airflow worker -- 1' bash -c '{again}; true'"
    (tmp_path / "worker.sh").write_text(f"({task}) & wait")
    environment = {**os.environ, MARKER_VARIABLE: str(tmp_path)}
    scheduler = psutil.Popen(["bash", "-c", f"bash {tmp_path}/worker.sh; true"], env=environment)
    try:
        eventually(lambda: any("driver_app.py" in each for each in _titles(scheduler)), what="the driver")
        assert leftovers.drain_drivers(tmp_path, 20, until=lambda: scheduler.poll() is not None, scheduler=scheduler.pid) == 0
        assert starts.read_text().count("\n") == 1
    finally:
        for each in [*scheduler.children(recursive=True), scheduler] if scheduler.is_running() else []:
            each.kill()
        leftovers.end_all(tmp_path, timeout=0.5)


def _titles(process: psutil.Popen) -> list[str]:
    return [" ".join(each.cmdline()) for each in process.children(recursive=True)]
