"""Finds the processes of a stack by a mark in their environment, whatever became of the processes that started them."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import time
from collections.abc import Callable, Collection
from pathlib import Path

import psutil

from sluiceway.provider.driver.processes import is_python_of
from sluiceway.stack.airflow import MARKER_VARIABLE

log = logging.getLogger(__name__)

_DRIVER = "driver_app.py"
_POLL_SECONDS = 0.2


def marked(state_dir: Path) -> list[psutil.Process]:
    """Return the living processes that a stack with this state folder started, this process and its parents left out."""
    ours = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.pid not in ours and process.environ().get(MARKER_VARIABLE) == str(state_dir):
                found.append(process)
    return found


def drain_drivers(state_dir: Path, timeout: float, *, until: Callable[[], bool]) -> int:
    """Ask the stack's drivers to drain until ``until`` says that no more will come; return how many had to be killed.

    That is those which are there ``timeout`` seconds later. A JVM that has no Python driver yet has nothing to drain.
    """
    told: set[psutil.Process] = set()
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        left = _drivers(state_dir)
        if until() and not left:
            return 0
        new = set(left) - told
        _signal(new, signal.SIGTERM)
        told |= new
        time.sleep(_POLL_SECONDS)
    left = _drivers(state_dir)
    _signal(left, signal.SIGKILL)  # their JVMs see it and end too
    return len(left)


def _drivers(state_dir: Path) -> list[psutil.Process]:
    """Return the Python drivers, and the JVMs that have not started theirs."""
    family = [process for process in marked(state_dir) if _names_driver(process)]
    python = [process for process in family if is_python_of(process, _DRIVER)]
    with_driver = {_parent(process) for process in python}
    return python + [process for process in family if process not in python and process.pid not in with_driver]


def _names_driver(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):
        return any(part.endswith(_DRIVER) for part in process.cmdline())
    return False


def _parent(process: psutil.Process) -> int | None:
    with contextlib.suppress(psutil.Error):
        return process.ppid()
    return None


def end(processes: Collection[psutil.Process], timeout: float) -> list[psutil.Process]:
    """Send SIGTERM and wait; return those that are left."""
    _signal(processes, signal.SIGTERM)
    return psutil.wait_procs(list(processes), timeout=timeout)[1]


def end_all(state_dir: Path, timeout: float) -> int:
    """End every process of the stack that is left: SIGTERM, then SIGKILL; return how many there were.

    Looks again until none is found, since one that is ending may start another.
    """
    count = 0
    for _ in range(5):
        left = marked(state_dir)
        if not left:
            break
        count += len(left)
        left = end(left, timeout)
        _signal(left, signal.SIGKILL)
        psutil.wait_procs(left, timeout=timeout)
    return count


def _signal(processes: Collection[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(number)
