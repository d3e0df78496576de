"""Kills the processes of a connector whose class is Java, at random points, and waits until its records move again."""

from __future__ import annotations

import enum
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

import psutil

from sluiceway.java_plugins.host import MAIN_CLASS
from sluiceway.stack.process import BackgroundProcess
from sluiceway.storage.model import State
from support.clusters.daemons import command_of
from support.eventually import eventually
from support.faults.kills import end_of
from support.faults.processes import Role, processes
from support.faults.rows import Row
from support.faults.worker_group import WorkerGroup

Moves = Callable[[int, BackgroundProcess], object]
"""Waits until a number of further records has arrived; fails if the driver ends."""

_RECORDS = 100  # that must arrive before and after each kill


class Part(enum.Enum):
    """A part of a running connector that can be killed."""

    TASK = "task process"
    TASK_JAVA = "Java process of the task"
    CONNECTOR_JAVA = "Java process of the connector"
    DRIVER = "driver"
    HOST = "host"


def kills() -> int:
    """Return how often each part is killed, from KILLS."""
    return int(os.environ.get("KILLS", "20"))


def kill_parts(group: WorkerGroup, connector: str, more: Moves, row: Row) -> None:
    """Kill each part of a connector ``kills()`` times, in random order; SEED repeats a run. Print a line for each kill."""
    seed = int(os.environ.get("SEED", random.SystemRandom().randrange(10**6)))
    chance = random.Random(seed)  # noqa: S311 (what to kill and when)
    chosen = [part for part in Part for _ in range(kills())]
    chance.shuffle(chosen)
    print(f"SEED={seed} KILLS={kills()}", flush=True)
    for number, part in enumerate(chosen, 1):
        more(_RECORDS, group.drivers[-1])
        time.sleep(chance.uniform(0, 1.2))
        group.running(connector)
        killed = time.monotonic()
        _kill(group, connector, part)
        group.running(connector)
        more(_RECORDS, group.drivers[-1])
        seconds = time.monotonic() - killed
        row.recovered(seconds)
        print(f"kill {number}/{len(chosen)}: {part.value}; {_RECORDS} further records after {seconds:.1f} s", flush=True)
    counts = Counter(part.value for part in chosen)
    print(f"{len(chosen)} kills: {', '.join(f'{count} of the {name}' for name, count in counts.items())}", flush=True)


def _kill(group: WorkerGroup, connector: str, part: Part) -> None:
    """Kill a part, check that the processes below it end, and do what a user must do: restart what failed."""
    driver = group.drivers[-1]
    task, own = eventually(lambda: _java(driver), what=f"the Java processes of {connector}")
    if part is Part.DRIVER:
        victims = processes(driver, Role.DRIVER)
    elif part is Part.HOST:
        jvm = psutil.Process(driver.status().pid or 0)
        victims = [jvm, *jvm.children(recursive=True)]
    else:
        victims = [{Part.TASK: task.parent() or task, Part.TASK_JAVA: task, Part.CONNECTOR_JAVA: own}[part]]
    for victim in victims:
        with suppress(psutil.NoSuchProcess):
            victim.send_signal(signal.SIGKILL)
    if part in (Part.DRIVER, Part.HOST):
        end_of(driver)
        group.driver(connector)
    left = {Part.TASK: [task], Part.TASK_JAVA: [], Part.CONNECTOR_JAVA: []}.get(part, [task, own])
    eventually(lambda: not any(map(_runs, left)), what=f"the end of the Java processes after a kill of the {part.value}")
    if part in (Part.TASK_JAVA, Part.CONNECTOR_JAVA):
        eventually(lambda: _failed(group, connector), what=f"FAILED after a kill of the {part.value}")
        group.herder.restart(connector, include_tasks=True, only_failed=True)


def _java(driver: BackgroundProcess) -> tuple[psutil.Process, psutil.Process] | None:
    """Return the Java processes of the task and of the connector, None if they do not both run."""
    try:
        below = psutil.Process(driver.status().pid or 0).children(recursive=True)
    except psutil.NoSuchProcess:
        return None
    drivers = {process.pid for process in below if "driver_app.py" in command_of(process)}
    found = [process for process in below if MAIN_CLASS in command_of(process)]
    tasks = [process for process in found if process.ppid() not in drivers]
    own = [process for process in found if process.ppid() in drivers]
    return (tasks[0], own[0]) if len(tasks) == len(own) == 1 else None


def _runs(process: psutil.Process) -> bool:
    return process.is_running() and command_of(process) != ""


def _failed(group: WorkerGroup, connector: str) -> bool:
    status = group.herder.status(connector)
    return any(each.state is State.FAILED for each in (status.connector, *status.tasks.values()))
