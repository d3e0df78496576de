"""Finds out from Spark which launched tasks hold a slot. Runs on the driver."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Any

from sluiceway.worker.task_watch import Slot

if TYPE_CHECKING:
    from pyspark import SparkContext

log = logging.getLogger(__name__)

_SECONDS = 1.0  # at least, between two surveys
_IDLE_FACTOR = 10  # a survey that took long is not repeated before this multiple of its time


class SlotUsage:
    """The slots of one application's launched tasks, at most about a second old. Thread-safe.

    Relies on ``spark.ui.liveUpdate.period`` 0; otherwise Spark's counts can be ten seconds old.
    """

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        self._lock = threading.Lock()
        self._jobs: set[str] = set()
        self._stages: dict[str, tuple[int, int]] = {}
        self._slots: dict[str, Slot] = {}
        self._again = 0.0

    def add(self, job: str) -> None:
        """Watch a job group that has been submitted and consists of one task."""
        with self._lock:
            self._jobs.add(job)

    def discard(self, job: str) -> None:
        """Forget a job group that has ended."""
        with self._lock:
            self._jobs.discard(job)
            self._stages.pop(job, None)
            self._slots.pop(job, None)

    @property
    def launched(self) -> int:
        """Number of tasks that have been launched and have not ended."""
        return len(self._jobs)

    def in_use(self) -> int:
        """Return how many tasks the executors run. Any error of Py4J means that Spark can no longer be reached."""
        return sum(executor.numRunningTasks() for executor in self._tracker().getExecutorInfos())

    def slot(self, job: str) -> Slot:
        with self._lock:
            now = time.monotonic()
            if now >= self._again:
                self._survey()
                done = time.monotonic()
                self._again = done + max(_SECONDS, _IDLE_FACTOR * (done - now))
            return self._slots.get(job, Slot.HELD)

    def _survey(self) -> None:
        from sluiceway.spark.session import slots

        try:
            # The common case costs one call and one for each executor, however many tasks there are.
            in_use = self.in_use()
            if in_use >= len(self._jobs):
                self._slots.clear()
            else:
                waits = Slot.QUEUED if in_use < slots(self._context) else Slot.NONE
                self._slots = {job: self._slot(job, waits) for job in self._jobs}
        except Exception as error:  # noqa: BLE001 (any Py4J error means that Spark can no longer be reached)
            log.debug("Spark does not say which tasks hold a slot: %s", error)
            self._slots.clear()

    def _slot(self, job: str, waits: Slot) -> Slot:
        if job not in self._stages:
            ids = list(self._tracker().getJobIdsForGroup(job))
            if not ids:
                return Slot.HELD  # its thread is about to submit it
            self._stages[job] = ids[0], self._tracker().getJobInfo(ids[0]).get().stageIds()[0]
        number, stage_id = self._stages[job]
        found = self._tracker().getStageInfo(stage_id)
        if found.isEmpty():
            return Slot.HELD
        stage = found.get()
        if stage.numActiveTasks() or stage.numCompletedTasks():
            return Slot.HELD
        if self._tracker().getJobInfo(number).get().status().toString() != "RUNNING":
            return Slot.HELD  # the job has failed, and its thread is about to know
        return Slot.LOST if stage.numFailedTasks() else waits

    def _tracker(self) -> Any:
        """Return Spark's ``SparkStatusTracker``, a Java object."""
        return self._context._jsc.sc().statusTracker()
