"""Measures the memory of a driver's Python processes over time."""

from __future__ import annotations

import contextlib
import threading
from types import TracebackType

import psutil

from sluiceway.stack.process import BackgroundProcess
from support.eventually import LIMIT
from support.faults.processes import Role, processes

_EVERY_SECONDS = 0.5


class Memory:
    """Samples the resident memory of a driver and its Python workers; the JVM has its own limit.

    Use it as a context manager once the tasks run. ``peak`` is the maximum in bytes since the last ``peak_since``.
    """

    def __init__(self, driver: BackgroundProcess) -> None:
        self._driver = driver
        self._watched = self._now()
        assert any(each in self._watched for each in processes(driver, Role.WORKERS)), f"{driver.name} has no Python worker"
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="memory", daemon=True)
        self.peak = self.start = self.sample()

    def sample(self) -> int:
        """Return the current resident memory in bytes."""
        total = 0
        for process in self._now():
            with contextlib.suppress(psutil.NoSuchProcess):
                total += process.memory_info().rss
        return total

    def peak_since(self) -> int:
        """Return the maximum in bytes until now, and reset it."""
        peak, self.peak = self.peak, self.sample()
        return peak

    def same_processes(self) -> bool:
        """True if all processes of the start are alive: a replaced one would have lost its memory."""
        return set(self._watched) <= set(self._now())

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stopping.set()
        self._thread.join(LIMIT)

    def _now(self) -> list[psutil.Process]:
        return [*processes(self._driver, Role.DRIVER), *processes(self._driver, Role.WORKERS)]

    def _run(self) -> None:
        while not self._stopping.wait(_EVERY_SECONDS):
            self.peak = max(self.peak, self.sample())
