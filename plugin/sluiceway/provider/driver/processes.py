"""Finds and signals the processes of a driver in client mode: spark-submit's JVM, the Python driver, the Python workers.

Runs in an Airflow task's process, their common ancestor. Remembers each process, because an orphan has lost its parent.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Collection
from pathlib import Path

import psutil


class DriverProcesses:
    """The process tree below one spark-submit.

    Args:
        pid: spark-submit's process id.
        application: path of the Python file that the driver runs; its name identifies the driver's process.
    """

    def __init__(self, pid: int, application: str) -> None:
        self._pid = pid
        self._application = Path(application).name
        self._known: set[psutil.Process] = set()

    def refresh(self) -> None:
        """Add the processes that now exist to the known ones. Call regularly, while the JVM still runs."""
        with contextlib.suppress(psutil.NoSuchProcess):
            root = psutil.Process(self._pid)
            # psutil, not /proc/<pid>/task/<pid>/children: the JVM starts the driver from a thread that is not its first.
            self._known.update((root, *root.children(recursive=True)))

    def drain(self) -> bool:
        """Send SIGTERM to the Python driver, so that it drains; return False if it does not run.

        Does not signal the JVM, which the tasks need until they have drained.
        """
        driver = self._driver()
        if driver is None:
            return False
        return _signal([driver], signal.SIGTERM) > 0

    def kill(self) -> int:
        """Send SIGKILL to every process of the tree that is alive; return their number."""
        self.refresh()
        return _signal(self._known, signal.SIGKILL)

    def wait(self, timeout: float) -> bool:
        """Wait at most ``timeout`` seconds for the Python driver to end; return whether it has."""
        driver = self._driver()
        return driver is None or not psutil.wait_procs([driver], timeout=timeout)[1]

    def drain_within(self, seconds: float, await_end: Callable[[], object]) -> None:
        """Drain the Python driver while ``await_end`` waits for the JVM's end; kill what is alive after ``seconds``.

        A JVM whose driver does not run yet has nothing to drain and is killed at once.
        """
        self.refresh()
        late = threading.Timer(seconds if self.drain() else 0.0, self.kill)
        late.start()
        try:
            await_end()
        finally:
            late.cancel()

    def count_alive(self) -> int:
        """Return the number of known processes that are alive."""
        return sum(1 for process in self._known if _is_alive(process))

    def _driver(self) -> psutil.Process | None:
        return next((process for process in self._known if is_python_of(process, self._application)), None)


def is_python_of(process: psutil.Process, application: str) -> bool:
    """Return whether a process is alive and is Python running this file.

    Checks the first argument only: the JVM's command line names the file too, further back.
    """
    with contextlib.suppress(psutil.Error):
        command = process.cmdline()
        return len(command) > 1 and Path(command[1]).name == application and _is_alive(process)
    return False


def _is_alive(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def _signal(processes: Collection[psutil.Process], number: signal.Signals) -> int:
    """Signal those that are alive, except this process; return how many were signalled."""
    reached = 0
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.pid != os.getpid() and _is_alive(process):
                process.send_signal(number)
                reached += 1
    return reached
