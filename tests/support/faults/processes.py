"""Finds a driver's processes by role, signals and freezes them."""

from __future__ import annotations

import contextlib
import enum
import signal

import psutil

from sluiceway.stack.process import BackgroundProcess
from support.clusters.daemons import command_of
from support.freeze import freeze as freeze_process


class Role(enum.Enum):
    """A driver's process: Spark's JVM, its child, the Python driver, or the Python workers that run tasks."""

    JVM = "JVM"
    DRIVER = "Python driver"
    WORKERS = "Python workers"


def processes(driver: BackgroundProcess, role: Role) -> list[psutil.Process]:
    """Return a driver's processes of a role; the workers include their fork server."""
    pid = driver.status().pid
    if pid is None:
        return []
    jvm = psutil.Process(pid)
    if role is Role.JVM:
        return [jvm]
    try:
        below = jvm.children(recursive=True)
    except psutil.NoSuchProcess:
        return []
    if role is Role.DRIVER:
        return [process for process in below if "driver_app.py" in command_of(process)]
    return [process for process in below if "pyspark" in command_of(process) and "driver_app.py" not in command_of(process)]


def send(driver: BackgroundProcess, role: Role, number: signal.Signals) -> list[psutil.Process]:
    """Send a signal to all processes of a role and return them; fail if there is none."""
    chosen = processes(driver, role)
    assert chosen, f"{driver.name} has no {role.value}\n{driver.log_tail(20)}"
    for process in chosen:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(number)
    return chosen


def family(driver: BackgroundProcess) -> list[psutil.Process]:
    """Return all processes of a driver."""
    return [process for role in Role for process in processes(driver, role)]


def freeze(driver: BackgroundProcess) -> list[psutil.Process]:
    """Stop all processes of a driver with SIGSTOP, as if its machine hung; return them for ``thaw``."""
    frozen = family(driver)
    for process in frozen:
        freeze_process(process.pid)
    return frozen


def thaw(frozen: list[psutil.Process]) -> None:
    """Continue frozen processes with SIGCONT, if they still exist."""
    for process in frozen:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGCONT)


def resident(driver: BackgroundProcess) -> int:
    """Return the resident memory of a driver's Python workers in bytes."""
    return sum(process.memory_info().rss for process in processes(driver, Role.WORKERS))
