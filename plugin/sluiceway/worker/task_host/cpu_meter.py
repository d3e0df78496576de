"""Measures how much of a core each of a process's tasks uses. Runs on executors."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

_SECONDS = 5.0  # over which a share is measured


@dataclass(slots=True)
class _Use:
    clock: int
    cpu: float
    since: float
    share: float = 0.0


class CpuMeter:
    """The share of a core that each task's own thread uses. Thread-safe.

    The threads of its Kafka clients are not counted, nor are those that a connector starts: what tasks contend for is Python's
    interpreter, in which a task's own thread spends most of its time.
    """

    def __init__(self) -> None:
        self._uses: dict[str, _Use] = {}

    def enter(self, job: str) -> None:
        """Count the calling thread as the task's."""
        clock = time.pthread_getcpuclockid(threading.get_ident())
        self._uses[job] = _Use(clock, time.clock_gettime(clock), time.monotonic())

    def leave(self, job: str) -> None:
        """Count it no longer. The thread must call this before it ends."""
        self._uses.pop(job, None)

    def share(self, job: str) -> float:
        """Return the share of a core that a task has used lately, in steps of 0.05; 0 for one that does not run yet."""
        use = self._uses.get(job)
        if use is None:
            return 0.0
        now = time.monotonic()
        if now - use.since >= _SECONDS:
            try:
                cpu = time.clock_gettime(use.clock)
            except OSError:  # the thread has just ended
                return 0.0
            use.share, use.cpu, use.since = (cpu - use.cpu) / (now - use.since), cpu, now
        return round(use.share * 20) / 20
