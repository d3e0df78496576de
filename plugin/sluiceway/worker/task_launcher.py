"""Starts tasks: the interface that the worker uses, and threads of this process for tests."""

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
    """Runs assignments somewhere. The future holds the loop's result, or the error that took the loop's process away."""

    def ensure_slots(self, needed: int, go_on: Callable[[], bool]) -> None:
        """Raise SlotsError if so many tasks cannot run at once, or once ``go_on``, asked now and then, says no."""

    def launch(self, assignment: Assignment) -> Future[TaskResult]: ...

    def cancel(self, assignment: Assignment) -> None:
        """End a task that did not stop by itself; its loop gets no chance to commit."""


class ThreadLauncher:
    """Runs each task as a thread of this process: for tests of what stands above the launcher."""

    def ensure_slots(self, needed: int, go_on: Callable[[], bool]) -> None:
        """Threads are not scarce."""

    def launch(self, assignment: Assignment) -> Future[TaskResult]:
        return in_thread(lambda: run_assignment(assignment), assignment)

    def cancel(self, assignment: Assignment) -> None:
        log.warning("Task %s runs as a thread and cannot be cancelled", assignment.spec.id)


def in_thread(work: Callable[[], TaskResult], assignment: Assignment) -> Future[TaskResult]:
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
