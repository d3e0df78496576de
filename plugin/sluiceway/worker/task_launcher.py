"""Defines how the worker starts tasks, and starts them as threads of this process for tests."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Protocol

from sluiceway.runtime.task import TaskResult
from sluiceway.worker.executor import Assignment, run_assignment

log = logging.getLogger(__name__)


class TaskLauncher(Protocol):
    """Starts tasks somewhere, such as on Spark executors. Runs on the driver; called from several runner threads."""

    def ensure_slots(self, needed: int, keep_waiting: Callable[[], bool]) -> None:
        """Wait until ``needed`` tasks can run at the same time.

        Raises SlotsError if they cannot, or as soon as ``keep_waiting`` returns False.
        """

    def launch(self, assignment: Assignment) -> Future[TaskResult]:
        """Start a task and return at once. The future holds its result, or the error that ended its process."""

    def cancel(self, assignment: Assignment) -> None:
        """Kill a task that did not stop when asked. It cannot commit any more."""


class ThreadLauncher:
    """Runs each task as a thread of this process. For tests."""

    def ensure_slots(self, needed: int, keep_waiting: Callable[[], bool]) -> None:
        """Do nothing: the number of threads is not limited."""

    def launch(self, assignment: Assignment) -> Future[TaskResult]:
        return in_thread(lambda: run_assignment(assignment), assignment)

    def cancel(self, assignment: Assignment) -> None:
        log.warning("Task %s runs as a thread and cannot be canceled", assignment.spec.id)


def in_thread(work: Callable[[], TaskResult], assignment: Assignment) -> Future[TaskResult]:
    """Run ``work`` on a new thread named after the task; return its future result."""
    future: Future[TaskResult] = Future()

    def run() -> None:
        try:
            result = work()
        except Exception as error:  # noqa: BLE001 (the thread's outermost frame: any error belongs to the future)
            future.set_exception(error)
        else:
            future.set_result(result)

    # PySpark pins Python threads to JVM threads, so a job group set on this thread applies to this task's job only.
    threading.Thread(target=run, name=f"task-{assignment.spec.id}", daemon=True).start()
    return future
