"""CPU time and memory of the processes that take part in running connectors on Spark, by their role."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import psutil

from support.clusters.daemons import command_of

BROKER, DRIVER_JVM, DRIVER_PYTHON, EXECUTORS, TASKS = "broker", "driver JVM", "driver Python", "executor JVMs", "tasks"
ROLES = (BROKER, DRIVER_JVM, DRIVER_PYTHON, EXECUTORS, TASKS)
_ROLE_OF = {
    "kafka.Kafka": BROKER,
    "org.apache.spark.deploy.SparkSubmit": DRIVER_JVM,
    "driver_app.py": DRIVER_PYTHON,
    "CoarseGrainedExecutorBackend": EXECUTORS,
    "pyspark.daemon": TASKS,
    "local_daemon": TASKS,
}
_MB = 1 << 20


@dataclass(frozen=True, slots=True)
class RoleCost:
    """Cost of all processes of a role: cores used over a while; processes, threads and memory at its end.

    ``pss`` (MB) shares pages that several processes use evenly among them; ``rss`` (MB) counts such pages in each process.
    """

    cores: float
    processes: int
    threads: int
    pss: float
    rss: float


def processes_by_role(roots: Iterable[int]) -> dict[str, list[psutil.Process]]:
    """Return the given processes and their descendants by role; others are left out."""
    found: dict[str, list[psutil.Process]] = {role: [] for role in ROLES}
    for root in roots:
        try:
            family = [psutil.Process(root), *psutil.Process(root).children(recursive=True)]
        except psutil.NoSuchProcess:
            continue
        for process in family:
            command = command_of(process)
            role = next((role for mark, role in _ROLE_OF.items() if mark in command), None)
            if role is not None and process not in found[role]:
                found[role].append(process)
    return found


def cpu_seconds_by_role(roots: Iterable[int]) -> dict[str, float]:
    """Return the CPU time of the given processes and their descendants since they were started."""
    return {role: sum(map(_cpu_seconds, members)) for role, members in processes_by_role(roots).items()}


class CostMeter:
    """Measures the cost by role from its creation to ``stop``. ``roots`` returns process ids whose descendants count too."""

    def __init__(self, roots: Callable[[], Iterable[int]]) -> None:
        self._roots = roots
        self._begin = {process: _cpu_seconds(process) for each in processes_by_role(roots()).values() for process in each}
        self._began = time.monotonic()

    def stop(self) -> dict[str, RoleCost]:
        """Return the costs; processes that have ended in the meantime do not count."""
        now = processes_by_role(self._roots())
        used = {
            role: sum(_cpu_seconds(process) - self._begin.get(process, 0.0) for process in members)
            for role, members in now.items()
        }
        seconds = time.monotonic() - self._began
        return {role: _cost(members, used[role] / seconds) for role, members in now.items()}


def _cost(members: list[psutil.Process], cores: float) -> RoleCost:
    pss = rss = 0.0
    threads = 0
    for process in members:
        try:
            memory = process.memory_full_info()
            threads += process.num_threads()
        except psutil.Error:
            continue
        rss += memory.rss / _MB
        pss += getattr(memory, "pss", 0) / _MB
    return RoleCost(cores, len(members), threads, pss, rss)


def _cpu_seconds(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.Error:
        return 0.0
    return float(times.user + times.system)
