"""Finds the processes of a stack by a mark in their environment, whatever became of the processes that started them."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
from collections.abc import Collection
from pathlib import Path

import psutil
from sluiceway.provider.driver_processes import is_python_of
from sluiceway.stack.airflow import MARKER_VARIABLE

log = logging.getLogger(__name__)

_DRIVER = "driver_app.py"


def marked(state_dir: Path) -> list[psutil.Process]:
    """Return the living processes that a stack with this state folder started, this process and its parents left out."""
    ours = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.pid not in ours and process.environ().get(MARKER_VARIABLE) == str(state_dir):
                found.append(process)
    return found


def drain_drivers(state_dir: Path, timeout: float) -> int:
    """Ask the stack's drivers to drain, and wait for them; kill those that have not after ``timeout`` seconds, say how many."""
    drivers = [process for process in marked(state_dir) if is_python_of(process, _DRIVER)]
    left = end(drivers, timeout)
    _signal(left, signal.SIGKILL)  # the JVM sees it and ends too
    return len(left)


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
