"""Kills a driver's processes at random points and waits until records move again."""

from __future__ import annotations

import random
import signal
import time

from sluiceway.stack.process import BackgroundProcess
from support.eventually import eventually
from support.faults.processes import Role, send
from support.faults.rows import Row
from support.faults.worker_group import BATCH, RATE, Progress, WorkerGroup


def at_a_random_point(progress: Progress, chance: random.Random) -> None:
    """Return at a random time between two commits, when more than a batch is uncommitted."""
    progress.more(2 * BATCH)
    time.sleep(chance.uniform(0, 1.2))


def end_of(driver: BackgroundProcess) -> None:
    eventually(lambda: not driver.is_running(), what=f"the end of {driver.name}")


def kill(group: WorkerGroup, role: Role, progress: Progress, row: Row) -> None:
    """Kill processes, start a new driver if the old one ends, and wait for its records."""
    driver = group.drivers[-1]
    send(driver, role, signal.SIGKILL)
    killed = time.monotonic()
    if role is not Role.WORKERS:
        end_of(driver)
        group.driver()
    progress.more(RATE, driver=group.drivers[-1])
    row.recovered(time.monotonic() - killed)
