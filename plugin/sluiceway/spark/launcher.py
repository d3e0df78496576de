"""Places tasks: each one is a single-partition Spark job of its own, submitted from a thread of its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Protocol

from sluiceway.runtime.task import TaskResult
from sluiceway.worker.executor import Assignment, run_assignment, run_partition

if TYPE_CHECKING:
    from pyspark import SparkContext

log = logging.getLogger(__name__)


class TaskLauncher(Protocol):
    """Runs assignments somewhere. The future holds the loop's result, or the error that took the loop's process away."""

    def ensure_slots(self, needed: int, go_on: Callable[[], bool]) -> None:
        """Raise SlotsError if so many tasks cannot run at once, or once ``go_on``, asked now and then, says no."""

    def launch(self, assignment: Assignment) -> Future[TaskResult]: ...

    def cancel(self, assignment: Assignment) -> None:
        """End a task that did not stop by itself; its loop gets no chance to commit."""


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

        return _in_thread(job, assignment)

    def cancel(self, assignment: Assignment) -> None:
        try:
            # Its thread may not have submitted the job yet, so this holds for future jobs too; PySpark has no call for that.
            self._context._jsc.sc().cancelJobGroupAndFutureJobs(assignment.job)
        except Exception as error:  # noqa: BLE001 (py4j's errors are many; whatever it was, Spark is not there any more)
            log.warning("Task %s could not be cancelled: %s", assignment.spec.id, error)


class ThreadLauncher:
    """Runs each task as a thread of this process: for tests of what stands above the launcher."""

    def ensure_slots(self, needed: int, go_on: Callable[[], bool]) -> None:
        """Threads are not scarce."""

    def launch(self, assignment: Assignment) -> Future[TaskResult]:
        return _in_thread(lambda: run_assignment(assignment), assignment)

    def cancel(self, assignment: Assignment) -> None:
        log.warning("Task %s runs as a thread and cannot be cancelled", assignment.spec.id)


def _in_thread(work: Callable[[], TaskResult], assignment: Assignment) -> Future[TaskResult]:
    future: Future[TaskResult] = Future()

    def run() -> None:
        try:
            result = work()
        except Exception as error:  # noqa: BLE001 (the outermost loop of a task: whatever ended it is the future's error)
            future.set_exception(error)
        else:
            future.set_result(result)

    # PySpark pins Python threads to JVM threads, so the job group set in this thread is this job's.
    threading.Thread(target=run, name=f"task-{assignment.spec.id}", daemon=True).start()
    return future
