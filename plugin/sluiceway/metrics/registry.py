"""The metrics of all tasks of this process, and of the process itself: what JMX's bean server is to Kafka Connect."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from sluiceway.metrics.beans import OWN, Bean, Value
from sluiceway.metrics.task_metrics import TaskMetrics
from sluiceway.storage.model import TaskId

_PAGE = os.sysconf("SC_PAGE_SIZE")


class Registry:
    """Tasks that run in this process, and how many have started. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tasks: dict[int, TaskMetrics] = {}
        self._started = 0
        self._failed = 0
        self._launches: dict[TaskId, int] = {}
        self._connectors_started = 0
        self._connectors_failed = 0
        self._takeovers: dict[str, tuple[int, float]] = {}

    @contextmanager
    def task(self, metrics: TaskMetrics) -> Iterator[None]:
        """Report a task's metrics for as long as the context is open."""
        with self._lock:
            self._tasks[id(metrics)] = metrics
        try:
            yield
        finally:
            with self._lock:
                del self._tasks[id(metrics)]

    def task_started(self, *, succeeded: bool) -> None:
        """Count the start of a task in this process."""
        with self._lock:
            if succeeded:
                self._started += 1
            else:
                self._failed += 1

    def task_launched(self, task: TaskId) -> None:
        """Count on the driver that it has launched a task."""
        with self._lock:
            self._launches[task] = self._launches.get(task, 0) + 1

    def connector_started(self, *, succeeded: bool) -> None:
        """Count on the driver the start of a connector."""
        with self._lock:
            if succeeded:
                self._connectors_started += 1
            else:
                self._connectors_failed += 1

    def lease_taken_over(self, connector: str) -> None:
        """Count on the driver that it has taken a connector's lease from a driver whose heartbeats had not stopped."""
        with self._lock:
            count, _ = self._takeovers.get(connector, (0, 0.0))
            self._takeovers[connector] = count + 1, time.time() * 1000

    def beans(self) -> list[Bean]:
        """Return all metrics of this process."""
        with self._lock:
            tasks, launches, takeovers = list(self._tasks.values()), dict(self._launches), dict(self._takeovers)
            starts = self._starts()
        process = {"process": str(os.getpid()), "host": os.uname().nodename}
        resident = _resident_bytes()
        beans = [bean for task in tasks for bean in task.beans()]
        for task in tasks:
            beans.append(Bean(OWN, "task-process-metrics", task.tags, {"memory-bytes": resident / len(tasks)}))
        for launched, count in launches.items():
            tags = {"connector": launched.connector, "task": str(launched.task)}
            beans.append(Bean(OWN, "task-launch-metrics", tags, {"restarts-total": float(count - 1)}))
        for connector, (taken, at) in takeovers.items():
            values: dict[str, Value] = {"takeovers-total": float(taken), "last-takeover-timestamp": at}
            beans.append(Bean(OWN, "lease-metrics", {"connector": connector}, values))
        beans.append(
            Bean(OWN, "process-metrics", process, {"cpu-seconds-total": time.process_time(), "memory-bytes": resident, **starts})
        )
        return beans

    def _starts(self) -> Mapping[str, Value]:
        return {
            "task-startup-success-total": float(self._started),
            "task-startup-failure-total": float(self._failed),
            "connector-startup-success-total": float(self._connectors_started),
            "connector-startup-failure-total": float(self._connectors_failed),
        }


registry = Registry()
"""The registry of this process."""


def _resident_bytes() -> float:
    """Return the process's resident memory. Executors have no psutil."""
    try:
        return float(int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE)
    except (OSError, IndexError, ValueError):  # not Linux
        return float("nan")
