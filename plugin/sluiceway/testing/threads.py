"""Calls a task as the runtime does: in one thread of its own."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTime
from typing import TypeVar

from sluiceway.testing.checks import breach

T = TypeVar("T")
_Job = tuple["Future[object]", Callable[[], object]]


class TaskThread:
    """One thread that makes all calls of one task, since a task may hold what belongs to a thread (a SQLite connection).

    A call that does not return in time is a breach; the thread is left behind and does not keep the process alive.
    """

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        threading.Thread(target=self._run, name="task under test", daemon=True).start()

    def call(self, function: Callable[..., T], *arguments: object, seconds: float, advice: str) -> T:
        """Return what the function returns, or raise what it raises, within so many seconds."""
        job: Future[object] = Future()
        self._jobs.put((job, lambda: function(*arguments)))
        try:
            return job.result(seconds)  # type: ignore[return-value]
        except NotInTime as error:
            if job.done():  # the function's own error, which is a timeout, too
                raise
            where = getattr(function, "__qualname__", str(function))
            breach(f"{where}()", f"did not return within {seconds:g} s", advice, error)

    def end(self) -> None:
        """Let the thread end once the calls made before have returned."""
        self._jobs.put(None)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            future, function = job
            try:
                future.set_result(function())
            except BaseException as error:  # noqa: BLE001 (raised again in the caller's thread)
                future.set_exception(error)
