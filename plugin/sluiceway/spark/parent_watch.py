"""Ends a driver after the process it depends on has ended: Spark's JVM, or the Airflow task that submitted the driver."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sluiceway import exit_codes
from sluiceway.errors import ConnectError
from sluiceway.worker.driver import Driver

if TYPE_CHECKING:
    from pyspark import SparkContext

log = logging.getLogger(__name__)

_POLL_SECONDS = 0.5
_DRAIN_SECONDS = 60.0  # longer than tasks may take to stop; afterwards the driver hangs


def stop_with_parent(driver: Driver, parent: int | None, end: Callable[[int], object] = os._exit) -> ParentWatch:
    """Drain when Spark's JVM or the process ``parent`` (the Airflow task that submitted this driver) has ended.

    Under spark-submit the JVM is this process's parent. Its tasks end with it, but nothing else would end this process. A driver
    that has not drained within a minute exits by ``end``. Pass None as ``parent`` for a driver that outlives its submitter.
    """
    jvm = os.getppid()
    ended: dict[str, Callable[[], bool]] = {"Spark's JVM has ended": lambda: os.getppid() != jvm}
    if parent:
        started = _start_time(parent)
        ended[f"the process that submitted this driver ({parent}) has ended"] = lambda: _start_time(parent) != started
    return ParentWatch(driver, ended, end)


def stop_with_jvm(driver: Driver, context: SparkContext) -> ParentWatch:
    """Drain when Spark's JVM, a child of this process in standalone mode, has ended; see ``stop_with_parent``."""
    if context._gateway is None:
        raise ConnectError("The Spark context has been stopped, so its JVM cannot be watched.")
    jvm = context._gateway.proc
    return ParentWatch(driver, {"Spark's JVM has ended": lambda: jvm.poll() is not None})


class ParentWatch:
    """A thread that stops the driver once a condition is true; the watch itself is then true.

    Args:
        driver: the driver to stop.
        ended: the conditions, each under the reason to report.
        end: ends this process with an exit code if the driver does not drain.
    """

    def __init__(self, driver: Driver, ended: Mapping[str, Callable[[], bool]], end: Callable[[int], object] = os._exit) -> None:
        self.reason: str | None = None
        self._driver = driver
        self._ended = ended
        self._end = end
        threading.Thread(target=self._watch, name="parent-watch", daemon=True).start()

    def __bool__(self) -> bool:
        return self.reason is not None

    def _watch(self) -> None:
        pause = threading.Event()
        while self.reason is None:
            pause.wait(_POLL_SECONDS)
            self.reason = next((reason for reason, has_ended in self._ended.items() if has_ended()), None)
        self._driver.stop(self.reason)
        pause.wait(_DRAIN_SECONDS)
        log.error("Exiting without a clean stop: %s, and connectors have not drained within %g s", self.reason, _DRAIN_SECONDS)
        sys.stderr.flush()
        self._end(exit_codes.FAILED)


def _start_time(process: int) -> str | None:
    """Return a process's start time in clock ticks, which reveals a reused process id; None if there is no such process."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] == "Z" else fields[19]
