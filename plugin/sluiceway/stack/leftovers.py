"""Finds and ends the processes of a stack by an environment variable, even after the processes that started them have ended."""

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
_TASK = "airflow worker -- "  # what Airflow calls the process of a task
_IDLE_SECONDS = 2.0  # that a task without a driver has to end by itself
_POLL_SECONDS = 0.2
_ROUNDS = 5


def marked(state_dir: Path) -> list[psutil.Process]:
    """Return the running processes of the stack with this state folder, except this process and its parents."""
    ours = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.pid not in ours and process.environ().get(MARKER_VARIABLE) == str(state_dir):
                found.append(process)
    return found


def drain_drivers(state_dir: Path, timeout: float, *, until: Callable[[], bool], scheduler: int | None = None) -> int:
    """Make the stack's drivers drain; kill those that run after ``timeout`` seconds and return their number.

    ``until`` returns True once no new driver can start. A JVM without a Python driver has nothing to drain. A task whose driver
    has ended would start another one, again and again, and the process ``scheduler`` waits for its tasks: they get SIGTERM, at
    once if they had a driver, otherwise when they have had none for two seconds.
    """
    signaled: set[psutil.Process] = set()
    idle_since: dict[psutil.Process, float] = {}
    driven: set[psutil.Process] = set()
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        left = _drivers(state_dir)
        if until() and not left:
            return 0
        now = time.monotonic()
        tasks = _tasks(scheduler)
        driven |= {task for task, drives in tasks.items() if drives}
        idle_since = {task: idle_since.get(task, now) for task, drives in tasks.items() if not drives}
        idle = {task for task, since in idle_since.items() if task in driven or now - since > _IDLE_SECONDS}
        new = {*left, *idle} - signaled
        _signal(new, signal.SIGTERM)
        signaled |= new
        time.sleep(_POLL_SECONDS)
    left = _drivers(state_dir)
    _signal(left, signal.SIGKILL)  # their JVMs notice and end too
    return len(left)


def _drivers(state_dir: Path) -> list[psutil.Process]:
    """Return the Python drivers, and the JVMs that have not started a Python driver yet."""
    family = [process for process in marked(state_dir) if _names_driver(process)]
    python = [process for process in family if is_python_of(process, _DRIVER)]
    with_driver = {_parent(process) for process in python}
    return python + [process for process in family if process not in python and process.pid not in with_driver]


def _tasks(scheduler: int | None) -> dict[psutil.Process, bool]:
    """Return the processes of tasks that Airflow's LocalExecutor runs, and whether each has a driver."""
    with contextlib.suppress(psutil.Error):
        if scheduler is not None:
            workers = psutil.Process(scheduler).children()
            tasks = [task for worker in workers for task in _children(worker) if " ".join(_command(task)).startswith(_TASK)]
            return {task: any(map(_names_driver, _children(task, recursive=True))) for task in tasks}
    return {}


def _children(process: psutil.Process, *, recursive: bool = False) -> list[psutil.Process]:
    with contextlib.suppress(psutil.Error):
        return process.children(recursive=recursive)
    return []


def _command(process: psutil.Process) -> list[str]:
    with contextlib.suppress(psutil.Error):
        return process.cmdline()
    return []


def _names_driver(process: psutil.Process) -> bool:
    return any(part.endswith(_DRIVER) for part in _command(process))


def _parent(process: psutil.Process) -> int | None:
    with contextlib.suppress(psutil.Error):
        return process.ppid()
    return None


def end(processes: Collection[psutil.Process], timeout: float) -> list[psutil.Process]:
    """Send SIGTERM, wait up to ``timeout`` seconds, and return the processes that still run."""
    _signal(processes, signal.SIGTERM)
    return psutil.wait_procs(list(processes), timeout=timeout)[1]


def end_all(state_dir: Path, timeout: float) -> int:
    """End every remaining process of the stack, with SIGTERM, then SIGKILL; return their number.

    Repeats the search, because a process may start another one while it ends.
    """
    count = 0
    for _ in range(_ROUNDS):
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
