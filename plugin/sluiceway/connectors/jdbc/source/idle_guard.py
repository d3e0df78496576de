"""Detects that a task is no longer polled, so that it can give up its transaction. Runs on the executors.

While a task is paused, an open transaction would block ALTER TABLE and, on PostgreSQL, vacuum.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_CHECK_SECONDS = 5.0


class IdleGuard:
    """Calls ``on_idle`` with the idle seconds after ``seconds`` without a poll; never while a poll runs.

    ``on_idle`` runs on a thread of this class.
    """

    def __init__(self, seconds: float, on_idle: Callable[[float], None]) -> None:
        self._seconds = seconds
        self._on_idle = on_idle
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._last = time.monotonic()
        self._thread: threading.Thread | None = None

    @contextmanager
    def polling(self) -> Iterator[None]:
        """Hold off ``on_idle`` during a poll. The first call starts the thread."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, name="jdbc-source-idle", daemon=True)
            self._thread.start()
        with self._lock:
            try:
                yield
            finally:
                self._last = time.monotonic()

    def stop(self) -> None:
        """Stop the thread and wait for it."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self) -> None:
        while not self._stopped.wait(min(self._seconds, _CHECK_SECONDS)):
            with self._lock:
                idle = time.monotonic() - self._last
                if idle >= self._seconds:
                    self._on_idle(idle)
