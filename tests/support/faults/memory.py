"""What the Python processes of a driver take in memory, over a while."""

from __future__ import annotations

import contextlib
import threading
from types import TracebackType

import psutil

from sluiceway.stack.process import BackgroundProcess
from support.faults.processes import Role, processes

_EVERY_SECONDS = 0.5


class Memory:
    """Samples the resident bytes of a driver and its Python workers, where all records are; the JVM has a limit of its own.

    Use it as a context manager, once the tasks run. ``peak`` is the most that was seen since ``peak_since``.
    """

    def __init__(self, driver: BackgroundProcess) -> None:
        self._driver = driver
        self._watched = self._now()
        assert any(each in self._watched for each in processes(driver, Role.WORKERS)), f"{driver.name} has no Python worker"
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="memory", daemon=True)
        self.peak = self.start = self.sample()

    def sample(self) -> int:
        """Return the bytes that are taken now."""
        total = 0
        for process in self._now():
            with contextlib.suppress(psutil.NoSuchProcess):
                total += process.memory_info().rss
        return total

    def peak_since(self) -> int:
        """Return the most that was seen until now, and begin anew."""
        peak, self.peak = self.peak, self.sample()
        return peak

    def same_processes(self) -> bool:
        """Whether all processes of the beginning still live: one that was replaced would have lost what it held."""
        return set(self._watched) <= set(self._now())

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stopping.set()
        self._thread.join(10)

    def _now(self) -> list[psutil.Process]:
        return [*processes(self._driver, Role.DRIVER), *processes(self._driver, Role.WORKERS)]

    def _run(self) -> None:
        while not self._stopping.wait(_EVERY_SECONDS):
            self.peak = max(self.peak, self.sample())
