"""The processes of a submitted driver in client mode: spark-submit's JVM, the Python driver below it, the Python workers.

Runs in an Airflow task's process, whose own children these are. Remembers them, because an orphan has lost its parent.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Collection
from pathlib import Path

import psutil


class DriverProcesses:
    """What hangs below one spark-submit process. ``application`` is the Python file by which the driver is known."""

    def __init__(self, pid: int, application: str) -> None:
        self._pid = pid
        self._application = Path(application).name
        self._known: set[psutil.Process] = set()

    def look(self) -> None:
        """Take note of the processes there are now. Call now and then, while the tree is whole."""
        with contextlib.suppress(psutil.NoSuchProcess):
            root = psutil.Process(self._pid)
            # Through psutil and not /proc's lists of children: the JVM starts the driver from a thread that is not its first.
            self._known.update((root, *root.children(recursive=True)))

    def drain(self) -> bool:
        """Send SIGTERM to the Python driver, which drains; False if there is none. The JVM must live on for that."""
        driver = self._driver()
        if driver is None:
            return False
        return _signal([driver], signal.SIGTERM) > 0

    def kill(self) -> int:
        """Kill whatever is left of the tree; return how many processes that were."""
        self.look()
        return _signal(self._known, signal.SIGKILL)

    def wait(self, timeout: float) -> bool:
        """Wait until the Python driver is gone, at most ``timeout`` seconds; whether it is."""
        driver = self._driver()
        return driver is None or not psutil.wait_procs([driver], timeout=timeout)[1]

    def left(self) -> int:
        """Return how many processes of the tree are alive."""
        return sum(1 for process in self._known if _is_alive(process))

    def _driver(self) -> psutil.Process | None:
        return next((process for process in self._known if is_python_of(process, self._application)), None)


def is_python_of(process: psutil.Process, application: str) -> bool:
    """Whether a living process is Python running this file; the JVM's command line names the file too, but not there."""
    with contextlib.suppress(psutil.Error):
        command = process.cmdline()
        return len(command) > 1 and Path(command[1]).name == application and _is_alive(process)
    return False


def _is_alive(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def _signal(processes: Collection[psutil.Process], number: signal.Signals) -> int:
    reached = 0
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.pid != os.getpid() and _is_alive(process):
                process.send_signal(number)
                reached += 1
    return reached
