"""Defines how the worker starts tasks, and starts them as threads of this process for tests."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Protocol

from sluiceway.errors import ConnectError
from sluiceway.runtime.task import TaskResult
from sluiceway.worker.executor import TaskAssignment, Work
from sluiceway.worker.task_watch import Slot

log = logging.getLogger(__name__)


class TaskLostError(ConnectError):
    """A task's process was lost. The message is the reason in one line; the cause has all details.

    ``crashed`` is True if the task's own process ended, and False for a loss through no fault of the task, such as its host's.
    """

    def __init__(self, message: str, *, crashed: bool) -> None:
        super().__init__(message)
        self.crashed = crashed


class TaskLauncher(Protocol):
    """Starts tasks somewhere, such as on Spark executors. Runs on the driver; called from several runner threads."""

    def launch(self, assignment: TaskAssignment, /) -> Future[TaskResult]:
        """Start a task as soon as there is a slot for it, and return at once.

        The future holds its result, or the error that ended its process; see ``TaskLostError``.
        """

    def cancel(self, assignment: TaskAssignment, /) -> None:
        """Kill a task that did not stop when asked, or keep it from starting. It cannot commit any more."""

    def slot(self, assignment: TaskAssignment, /) -> Slot:
        """Return whether a launched task has a slot. Cheap enough to call every second for each task."""

    def must_move(self, assignment: TaskAssignment, /) -> str | None:
        """Return why a launched task must stop and start elsewhere, such as on another executor; None if it can stay.

        Cheap enough to call every second for each task.
        """

    def slots_advice(self) -> str:
        """Describe the slots that there are, and how to get more. For the status of a task that waits for one."""

    def has_ended(self) -> bool:
        """Return True once no task can be launched any more, because the application that runs them has ended."""


class ProcessLauncher(Protocol):
    """Starts Python worker processes, each for a task or a host of tasks. Its methods are those of ``TaskLauncher``, and more."""

    def launch(self, work: Work, /) -> Future[TaskResult]: ...

    def cancel(self, work: Work, /) -> None: ...

    def slot(self, work: Work, /) -> Slot: ...

    def must_move(self, work: Work, /) -> str | None: ...

    def slots_advice(self) -> str: ...

    def has_ended(self) -> bool: ...

    def shareable(self, assignment: TaskAssignment, /) -> bool:
        """Return False for a task that cannot run beside others in a worker process."""

    def has_free_slot(self) -> bool:
        """Return whether another process would have a slot, now or once Spark has added an executor."""


class ThreadLauncher:
    """Runs each task as a thread of this process. For tests."""

    def launch(self, work: Work) -> Future[TaskResult]:
        return in_thread(work.run, work)

    def cancel(self, work: Work) -> None:
        log.warning("%s runs as a thread and cannot be canceled", work.title)

    def slot(self, work: Work) -> Slot:
        """Return HELD: the number of threads is not limited."""
        return Slot.HELD

    def must_move(self, work: Work) -> str | None:
        """Return None: the process stays."""
        return None

    def slots_advice(self) -> str:
        return ""

    def has_ended(self) -> bool:
        return False

    def shareable(self, assignment: TaskAssignment) -> bool:
        return True

    def has_free_slot(self) -> bool:
        return True


def in_thread(call: Callable[[], TaskResult], work: Work) -> Future[TaskResult]:
    """Call ``call`` on a new thread named after the work; return its future result."""
    future: Future[TaskResult] = Future()

    def run() -> None:
        try:
            result = call()
        except Exception as error:  # noqa: BLE001 (the thread's outermost frame: any error belongs to the future)
            future.set_exception(error)
        else:
            future.set_result(result)

    # PySpark pins Python threads to JVM threads, so a job group set on this thread applies to this task's job only.
    threading.Thread(target=run, name=f"task-{work.id}", daemon=True).start()
    return future
