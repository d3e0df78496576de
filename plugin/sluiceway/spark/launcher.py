"""Launches each task as a Spark job with a single partition, submitted from a thread of its own."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING

from sluiceway.runtime.task import TaskResult
from sluiceway.worker.executor import Assignment, run_partition
from sluiceway.worker.task_launcher import in_thread

if TYPE_CHECKING:
    from pyspark import SparkContext

log = logging.getLogger(__name__)


class SparkLauncher:
    """See ``TaskLauncher``. Runs on the driver.

    ``slots_timeout`` is how many seconds ``ensure_slots`` waits for executors to register.
    """

    def __init__(self, context: SparkContext, *, slots_timeout: float = 60.0) -> None:
        self._context = context
        self._slots_timeout = slots_timeout

    def ensure_slots(self, needed: int, keep_waiting: Callable[[], bool]) -> None:
        from sluiceway.spark.session import wait_for_slots

        wait_for_slots(self._context, needed, self._slots_timeout, keep_waiting)

    def launch(self, assignment: Assignment) -> Future[TaskResult]:
        def job() -> TaskResult:
            self._context.setJobGroup(assignment.job, f"Connect task {assignment.spec.id}", interruptOnCancel=True)
            return self._context.parallelize([assignment], 1).mapPartitions(run_partition).collect()[0]

        return in_thread(job, assignment)

    def cancel(self, assignment: Assignment) -> None:
        try:
            # Includes future jobs, because the task's thread may not have submitted its job yet. PySpark itself cannot do that.
            self._context._jsc.sc().cancelJobGroupAndFutureJobs(assignment.job)
        except Exception as error:  # noqa: BLE001 (any Py4J error means that Spark can no longer be reached)
            log.warning("Task %s could not be canceled because Spark does not answer: %s", assignment.spec.id, error)
