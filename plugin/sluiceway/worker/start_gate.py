"""Limits how many tasks, or drivers, start at once on this machine: to the number of its cores.

The start of a task or driver takes much processor time, and little after it. Many at once would slow down what already runs, so
that heartbeats came too late. The limit concerns all processes of this user: a start holds the lock of one of as many files as
there are cores. The kernel releases it if the process ends. Needs the standard library only, because Airflow tasks import it.
"""

from __future__ import annotations

import fcntl
import logging
import os
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from sluiceway.folders import private_folder

log = logging.getLogger(__name__)

_POLL_SECONDS = 0.05
_LOOK_SECONDS = 0.5  # between two calls of ``gives_up`` by a thread that waits for other threads


class StartSlot:
    """The right to start. Thread-safe."""

    def __init__(self, release: Callable[[], None], hold: float) -> None:
        self._release = release
        self._lock = threading.Lock()
        self._held = True
        self._timer = threading.Timer(hold, self.release)
        self._timer.daemon = True
        self._timer.start()

    def release(self) -> None:
        """Let another one start, because this one runs or has failed. Repeatable."""
        with self._lock:
            held, self._held = self._held, False
        if held:
            self._timer.cancel()
            self._release()


class StartGate:
    """Gives out slots to start. Thread-safe.

    Args:
        kind: what starts: ``task`` or ``driver``. Each kind has slots of its own.
        limit: the number of slots; default is the number of cores that this process may use.
        hold: seconds after which a start counts as over, because it waits for something else than this machine.
        patience: seconds after which a start needs no slot any more, such as while a process that holds one is suspended.
        folder: the folder of the lock files.
    """

    def __init__(
        self, kind: str, *, limit: int | None = None, hold: float = 5.0, patience: float = 60.0, folder: Path | None = None
    ) -> None:
        self._limit = limit or _cores()
        self._kind = kind
        self._hold = hold
        self._patience = patience
        self._folder = folder or Path(tempfile.gettempdir()) / f"sluiceway-starts-{os.getuid()}"
        # Most threads of a process wait here, and only a few of them poll the files.
        self._threads = threading.BoundedSemaphore(self._limit)

    def enter(self, gives_up: Callable[[], bool] = lambda: False) -> StartSlot | None:
        """Wait for a slot and return it; None if ``gives_up`` returns True before."""
        deadline = time.monotonic() + self._patience
        while not self._threads.acquire(timeout=_LOOK_SECONDS):
            if gives_up():
                return None
            if time.monotonic() >= deadline:
                return StartSlot(lambda: None, self._hold)
        descriptor = -1
        try:
            while not gives_up():
                descriptor = self._try_lock()
                if descriptor >= 0 or time.monotonic() >= deadline:
                    break
                time.sleep(_POLL_SECONDS)
            else:
                self._threads.release()
                return None
        except OSError as error:
            log.debug("Cannot limit how many %ss start at once: %s", self._kind, error)
        return StartSlot(lambda: self._leave(descriptor), self._hold)

    def _try_lock(self) -> int:
        """Return the descriptor of a locked file, -1 if all are locked."""
        private_folder(self._folder)
        for number in range(self._limit):
            path = self._folder / f"{self._kind}-{number}"
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
            else:
                return descriptor
        return -1

    def _leave(self, descriptor: int) -> None:
        if descriptor >= 0:
            fcntl.flock(descriptor, fcntl.LOCK_UN)  # a child process of the task may have inherited it
            os.close(descriptor)
        self._threads.release()


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count() or 1
