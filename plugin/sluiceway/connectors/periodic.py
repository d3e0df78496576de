"""Runs a connector's periodic jobs on a thread of their own. Runs on the driver."""

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
    """A function to call every ``interval`` seconds (None: never), the first time at once or after one interval."""

    description: str
    run: Callable[[], object]
    interval: float | None
    at_once: bool = False


class Periodic:
    """Runs jobs, one at a time. A failure is logged; the job runs again after its interval."""

    def __init__(self, name: str, jobs: Sequence[Job]) -> None:
        self._jobs = [job for job in jobs if job.interval is not None]
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        if self._jobs:
            self._thread.start()

    def stop(self, timeout: float = 5.0) -> None:
        """Start no more jobs, and wait at most ``timeout`` seconds for the running one."""
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
            self._run_once(job)
            due[job] = time.monotonic() + (job.interval or 0.0)

    @staticmethod
    def _run_once(job: Job) -> None:
        try:
            job.run()
        except ConnectError as error:
            log.error("Failed %s, trying again in %g s: %s", job.description, job.interval, error)
        except Exception:  # the outermost loop of a thread
            log.exception("Failed %s, trying again in %g s", job.description, job.interval)
