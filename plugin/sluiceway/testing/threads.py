"""Calls a task like the runtime does: on one thread of its own."""

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
    """The thread for all calls of a task, because a task may have thread-bound resources such as a SQLite connection.

    A call that does not return in time violates the contract. Its daemon thread does not keep the process alive.
    """

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        threading.Thread(target=self._run, name="task under test", daemon=True).start()

    def call(self, function: Callable[..., T], *arguments: object, seconds: float, advice: str) -> T:
        """Return the function's result or raise its error; raise ContractError if it does not return within ``seconds``."""
        job: Future[object] = Future()
        self._jobs.put((job, lambda: function(*arguments)))
        try:
            return job.result(seconds)  # type: ignore[return-value]
        except NotInTime as error:
            if job.done():  # the function itself raised a TimeoutError
                raise
            where = getattr(function, "__qualname__", str(function))
            breach(f"{where}()", f"did not return within {seconds:g} s", advice, error)

    def end(self) -> None:
        """End the thread after the calls made before."""
        self._jobs.put(None)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            future, function = job
            try:
                future.set_result(function())
            except BaseException as error:  # noqa: BLE001 (raised again in the caller's thread)
                future.set_exception(error)
