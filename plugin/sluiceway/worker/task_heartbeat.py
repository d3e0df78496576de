"""Repeats a task's status as the task's heartbeat. Runs on executors, on a thread of its own.

A ``poll`` or ``put`` may block for a long time, so the task's loop cannot send the heartbeat itself.
"""

from __future__ import annotations

import logging
import threading
import time

from sluiceway.runtime.task import TaskReporter
from sluiceway.storage.model import State

log = logging.getLogger(__name__)

_REPEATED = (State.RUNNING, State.PAUSED)
_LATE_SECONDS = 1.0  # after which a heartbeat is late
_CLOSE_SECONDS = 2.0  # that the task's end waits for a heartbeat that is being written


class HeartbeatReporter:
    """A ``TaskReporter`` that writes the last RUNNING or PAUSED status again every ``interval`` seconds. Thread-safe.

    Any other status ends the heartbeats, and so does ``stop``. A heartbeat that cannot be written never fails the task.
    """

    def __init__(self, reporter: TaskReporter, interval: float) -> None:
        self._reporter = reporter
        self._interval = interval
        self._lock = threading.Lock()  # keeps a heartbeat from following a later status
        self._state: State | None = None
        self._trace: str | None = None
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._warned = False

    def report(self, state: State, trace: str | None = None) -> None:
        with self._lock:
            self._state, self._trace = state if state in _REPEATED else None, trace
            self._reporter.report(state, trace)
        if self._thread is None and self._state is not None:
            self._thread = threading.Thread(target=self._beat, name="task-heartbeat", daemon=True)
            self._thread.start()

    def topic(self, topic: str) -> None:
        self._reporter.topic(topic)

    def stop(self) -> None:
        """Send no more heartbeats, because the task must stop or has ended. Does not wait long for an unreachable cluster."""
        self._stopped.set()
        if self._lock.acquire(timeout=_CLOSE_SECONDS):
            self._lock.release()

    def _beat(self) -> None:
        due = time.monotonic() + self._interval
        while not self._stopped.wait(max(0.0, due - time.monotonic())):
            # A process that was suspended may have been replaced. Let its loop read that before another RUNNING is written.
            if time.monotonic() - due > _LATE_SECONDS and self._stopped.wait(self._interval / 2):
                return
            due = time.monotonic() + self._interval
            with self._lock:
                if self._state is not None and not self._stopped.is_set():
                    self._write(self._state)

    def _write(self, state: State) -> None:
        try:
            self._reporter.report(state, self._trace)
        except Exception as error:  # noqa: BLE001 (a heartbeat must not end the task, whatever went wrong)
            if not self._warned:
                log.warning("Cannot write the task's heartbeat; trying again every %g s: %s", self._interval, error)
            self._warned = True
        else:
            self._warned = False
