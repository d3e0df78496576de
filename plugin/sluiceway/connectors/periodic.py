"""Runs jobs at intervals in a thread of its own. Driver."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sluiceway.errors import ConnectError

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Job:
    """What to do every ``interval`` seconds (None: never), first at once or only after the first interval."""

    description: str
    run: Callable[[], object]
    interval: float | None
    at_once: bool = False


class Periodic:
    """Runs jobs one after the other. One that fails is logged and tried again at its next time."""

    def __init__(self, name: str, jobs: Sequence[Job]) -> None:
        self._jobs = [job for job in jobs if job.interval is not None]
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        if self._jobs:
            self._thread.start()

    def stop(self, timeout: float = 5.0) -> None:
        """Begin no job any more; wait at most so many seconds for one that runs."""
        self._stopping.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout)

    def _run(self) -> None:
        now = time.monotonic()
        due = {job: now if job.at_once else now + (job.interval or 0.0) for job in self._jobs}
        while True:
            job = min(due, key=due.__getitem__)
            if self._stopping.wait(min(max(0.0, due[job] - time.monotonic()), threading.TIMEOUT_MAX)):
                return
            self._do(job)
            due[job] = time.monotonic() + (job.interval or 0.0)

    @staticmethod
    def _do(job: Job) -> None:
        try:
            job.run()
        except ConnectError as error:
            log.error("Failed %s, which is tried again in %g s: %s", job.description, job.interval, error)
        except Exception:  # the outermost loop of a thread
            log.exception("Failed %s, which is tried again in %g s", job.description, job.interval)
