"""Tests of a driver's processes: a fake JVM with a Python driver and a worker as descendants."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from sluiceway.provider.driver.processes import DriverProcesses
from support.eventually import LIMIT, eventually

# Has the driver's file on its command line, as spark-submit does, and starts the driver in another thread.
_JVM = """
import subprocess, sys, threading
def run():
    subprocess.run([sys.executable, sys.argv[1], "--connector", "c"])
threading.Thread(target=run).start()
threading.Event().wait()
"""

_DRIVER = """
import signal, subprocess, sys
from pathlib import Path
worker = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
def drain(*_):
    Path(__file__).with_name("drained").touch()
    worker.terminate()
    sys.exit(0)
signal.signal(signal.SIGTERM, drain)
Path(__file__).with_name("ready").touch()
signal.pause()
"""


@pytest.fixture
def jvm(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    driver = tmp_path / "the_driver.py"
    driver.write_text(_DRIVER)
    process = subprocess.Popen([sys.executable, "-c", _JVM, str(driver)])
    eventually(lambda: (tmp_path / "ready").exists(), what="the driver")
    yield process
    if process.poll() is None:
        members: list[psutil.Process | subprocess.Popen[bytes]] = [*psutil.Process(process.pid).children(recursive=True), process]
        for member in members:
            member.kill()
    process.wait()


@pytest.fixture
def processes(jvm: subprocess.Popen[bytes], tmp_path: Path) -> DriverProcesses:
    found = DriverProcesses(jvm.pid, str(tmp_path / "the_driver.py"))
    found.refresh()
    return found


def test_the_whole_process_tree_is_found(processes: DriverProcesses) -> None:
    assert processes.count_alive() == 3


def test_drain_signals_the_python_driver_and_not_the_jvm(
    processes: DriverProcesses, jvm: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    assert processes.drain()
    assert processes.wait(LIMIT)
    assert (tmp_path / "drained").exists()
    assert jvm.poll() is None
    assert not processes.drain()


def test_wait_returns_false_while_the_driver_runs(processes: DriverProcesses) -> None:
    assert not processes.wait(0.2)


def test_processes_that_outlive_the_jvm_are_killed(processes: DriverProcesses, jvm: subprocess.Popen[bytes]) -> None:
    jvm.send_signal(signal.SIGKILL)
    eventually(lambda: processes.count_alive() == 2, what="the JVM is not counted, although it is a zombie")
    jvm.wait()
    assert processes.kill() == 2
    eventually(lambda: processes.count_alive() == 0)
    assert processes.kill() == 0


@pytest.mark.parametrize("driver", ["drains", "hangs", "has not begun"])
def test_a_driver_drains_within_some_seconds_or_is_killed(jvm: subprocess.Popen[bytes], tmp_path: Path, driver: str) -> None:
    processes = DriverProcesses(jvm.pid, str(tmp_path / ("other.py" if driver == "has not begun" else "the_driver.py")))
    processes.refresh()
    if driver == "hangs":
        for child in psutil.Process(jvm.pid).children():
            child.suspend()

    def await_end() -> None:
        if driver == "drains":
            assert processes.wait(LIMIT)
        else:
            jvm.wait(LIMIT)

    processes.drain_within(LIMIT if driver == "drains" else 0.2, await_end)
    assert (tmp_path / "drained").exists() is (driver == "drains")
    assert (jvm.poll() is None) is (driver == "drains")
