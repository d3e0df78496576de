"""Breaks off looks that nobody goes on with: a paused task would keep a transaction open, and DDL waiting. Executor."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_CHECK_SECONDS = 5.0


class IdleGuard:
    """Calls ``act`` after so many seconds without a call of the task's. ``act`` never runs while one is going on."""

    def __init__(self, seconds: float, act: Callable[[float], None]) -> None:
        self._seconds = seconds
        self._act = act
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._last = time.monotonic()
        self._thread: threading.Thread | None = None

    @contextmanager
    def busy(self) -> Iterator[None]:
        """A call of the task's."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, name="jdbc-source-idle", daemon=True)
            self._thread.start()
        with self._lock:
            try:
                yield
            finally:
                self._last = time.monotonic()

    def stop(self) -> None:
        """End the thread; ``act`` is not called any more."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(min(self._seconds, _CHECK_SECONDS)):
            with self._lock:
                idle = time.monotonic() - self._last
                if idle >= self._seconds:
                    self._act(idle)
