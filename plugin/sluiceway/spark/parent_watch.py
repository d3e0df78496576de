"""Ends a driver that has lost the process it depends on: Spark's JVM, or the Airflow task that submitted it."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sluiceway import exit_codes
from sluiceway.worker.driver import Driver

if TYPE_CHECKING:
    from pyspark import SparkContext

log = logging.getLogger(__name__)

_LOOK_SECONDS = 0.5
_DRAIN_SECONDS = 60.0  # more than tasks may take to stop; what hangs then, hangs for good


def stop_with_parent(driver: Driver, parent: int | None) -> Orphaned:
    """Drain when the process ``parent`` (the Airflow task that submitted this driver) is gone, or Spark's JVM.

    Under spark-submit the JVM is this process's own parent; once that is gone the tasks are too, and nobody would end this
    process. One that has not drained within a minute is ended all the same. Without ``parent`` the driver is detached.
    """
    jvm = os.getppid()
    gone: dict[str, Callable[[], bool]] = {"Spark's JVM is gone": lambda: os.getppid() != jvm}
    if parent:
        started = _start_time(parent)
        gone[f"the process that submitted this driver ({parent}) is gone"] = lambda: _start_time(parent) != started
    return Orphaned(driver, gone)


def stop_with_jvm(driver: Driver, context: SparkContext) -> Orphaned:
    """Drain when Spark's JVM, which this process has started (standalone mode), is gone; see ``stop_with_parent``."""
    jvm = context._gateway.proc
    return Orphaned(driver, {"Spark's JVM is gone": lambda: jvm.poll() is not None})


class Orphaned:
    """Watches in a thread. True once one of the conditions, each with the reason to give, holds."""

    def __init__(self, driver: Driver, gone: Mapping[str, Callable[[], bool]], end: Callable[[int], object] = os._exit) -> None:
        self.reason: str | None = None
        self._driver = driver
        self._gone = gone
        self._end = end
        threading.Thread(target=self._watch, name="parent-watch", daemon=True).start()

    def __bool__(self) -> bool:
        return self.reason is not None

    def _watch(self) -> None:
        pause = threading.Event()
        while self.reason is None:
            pause.wait(_LOOK_SECONDS)
            self.reason = next((reason for reason, is_so in self._gone.items() if is_so()), None)
        self._driver.stop(self.reason)
        pause.wait(_DRAIN_SECONDS)
        log.error("Ending without a clean stop: %s, and the connectors have not drained within %g s", self.reason, _DRAIN_SECONDS)
        sys.stderr.flush()
        self._end(exit_codes.FAILED)


def _start_time(process: int) -> str | None:
    """Return a process's start time in clock ticks, which tells a recycled process number; None if there is no such process."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] == "Z" else fields[19]
