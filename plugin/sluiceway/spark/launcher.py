"""Places tasks: each one is a single-partition Spark job of its own, submitted from a thread of its own."""

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
    """Runs each task as a Spark job. Lives on the driver."""

    def __init__(self, context: SparkContext, *, slots_timeout: float = 60.0) -> None:
        self._context = context
        self._slots_timeout = slots_timeout

    def ensure_slots(self, needed: int, go_on: Callable[[], bool]) -> None:
        from sluiceway.spark.session import wait_for_slots

        wait_for_slots(self._context, needed, self._slots_timeout, go_on)

    def launch(self, assignment: Assignment) -> Future[TaskResult]:
        def job() -> TaskResult:
            self._context.setJobGroup(assignment.job, f"Connect task {assignment.spec.id}", interruptOnCancel=True)
            return self._context.parallelize([assignment], 1).mapPartitions(run_partition).collect()[0]

        return in_thread(job, assignment)

    def cancel(self, assignment: Assignment) -> None:
        try:
            # Its thread may not have submitted the job yet, so this holds for future jobs too; PySpark has no call for that.
            self._context._jsc.sc().cancelJobGroupAndFutureJobs(assignment.job)
        except Exception as error:  # noqa: BLE001 (py4j's errors are many; whatever it was, Spark is not there any more)
            log.warning("Task %s could not be cancelled: %s", assignment.spec.id, error)
