"""Finds the tasks whose executor is being decommissioned, so that the driver can move them. Runs on the driver.

Spark starts no new task on such an executor and waits for the running ones, but a connector's tasks never end by themselves. The
cluster manager kills the executor after a grace period, such as 30 seconds on Kubernetes.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark import SparkContext

log = logging.getLogger(__name__)

_SECONDS = 1.0  # at least, between two questions to Spark


class Decommissions:
    """The decommissioned executors of one application, at most about a second old. Thread-safe."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        self._lock = threading.Lock()
        self._leaving: frozenset[str] = frozenset()
        self._executors: dict[str, str] = {}
        self._again = 0.0

    def executor(self, job: str) -> str | None:
        """Return the id of the decommissioned executor that runs this job group, which has one task; None if there is none."""
        with self._lock:
            try:
                self._update()
                return self._executor(job) if self._leaving else None
            except Exception as error:  # noqa: BLE001 (any Py4J error means that Spark can no longer be reached)
                log.debug("Spark does not say which executors are decommissioned: %s", error)
                return None

    def _update(self) -> None:
        now = time.monotonic()
        if now < self._again:
            return
        self._again = now + _SECONDS
        # Public neither in Spark nor in PySpark: there is no listener event or status for a decommissioned executor.
        pending = self._context._jsc.sc().taskScheduler().executorsPendingDecommission()
        self._leaving = frozenset() if pending.isEmpty() else frozenset(pending.keySet().mkString(",").split(","))
        if not self._leaving:
            self._executors.clear()

    def _executor(self, job: str) -> str | None:
        if job not in self._executors:
            found = self._running_on(job)
            if found is None:
                return None
            self._executors[job] = found
        return self._executors[job] if self._executors[job] in self._leaving else None

    def _running_on(self, job: str) -> str | None:
        tracker = self._context.statusTracker()
        for number in tracker.getJobIdsForGroup(job):
            info = tracker.getJobInfo(number)
            for stage in info.stageIds if info is not None else ():
                tasks: Any = self._context._jsc.sc().statusStore().taskList(stage, 0, 1)
                if not tasks.isEmpty() and tasks.head().status() == "RUNNING":
                    return str(tasks.head().executorId())
        return None
