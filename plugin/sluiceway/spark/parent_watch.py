"""Ends a driver after what it depends on has ended: Spark's JVM, the application, or the Airflow task that submitted it."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
_ENDED_SECONDS = 10.0  # without its application, a driver has only statuses left to write


@dataclass(frozen=True)
class EndCondition:
    """A reason to end a driver.

    Args:
        reason: returns the reason as soon as the driver must end, None until then.
        exit_code: the driver's exit code.
        published: whether the reason is published as the trace of connectors and tasks.
    """

    reason: Callable[[], str | None]
    exit_code: int = exit_codes.FAILED
    published: bool = False


def stop_with_parent(
    driver: Driver,
    parent: int | None,
    application: Callable[[], str | None] = lambda: None,
    end: Callable[[int], object] = os._exit,
) -> ParentWatch:
    """Drain when Spark's JVM, the application, or the process ``parent`` (the Airflow task that submitted this driver) has ended.

    Under spark-submit the JVM is this process's parent. Its tasks end with it, but nothing else would end this process. A driver
    that has not drained within a minute, or 10 s after the end of its application, exits by ``end``. Pass None as ``parent`` for
    a driver that outlives its submitter. ``application`` returns the reason once the Spark application has ended.
    """
    jvm = os.getppid()
    conditions = [EndCondition(lambda: "Spark's JVM has ended" if os.getppid() != jvm else None)]
    if parent:
        started = _start_time(parent)
        reason = f"the process that submitted this driver ({parent}) has ended"
        conditions.append(EndCondition(lambda: reason if _start_time(parent) != started else None))
    conditions.append(EndCondition(application, exit_codes.APPLICATION_ENDED, published=True))
    return ParentWatch(driver, conditions, end)


def stop_with_jvm(driver: Driver, context: SparkContext) -> ParentWatch:
    """Drain when Spark's JVM, a child of this process in standalone mode, has ended; see ``stop_with_parent``."""
    if context._gateway is None:
        raise ConnectError("The Spark context has been stopped, so its JVM cannot be watched.")
    jvm = context._gateway.proc
    return ParentWatch(driver, [EndCondition(lambda: "Spark's JVM has ended" if jvm.poll() is not None else None)])


class ParentWatch:
    """A thread that stops the driver once a condition is met; the watch itself is then true.

    Args:
        driver: the driver to stop.
        conditions: polled in this order.
        end: ends this process with an exit code if the driver does not drain.
    """

    def __init__(self, driver: Driver, conditions: Sequence[EndCondition], end: Callable[[int], object] = os._exit) -> None:
        self.reason: str | None = None
        self.exit_code: int | None = None
        self._driver = driver
        self._conditions = conditions
        self._end = end
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="parent-watch", daemon=True)
        self._thread.start()

    def __bool__(self) -> bool:
        return self.reason is not None

    def close(self) -> None:
        """Stop watching, because the driver has drained and now ends its application itself."""
        self._closed.set()
        self._thread.join(_POLL_SECONDS * 10)

    def _watch(self) -> None:
        while (met := self._met()) is None or self._closed.is_set():
            if self._closed.wait(_POLL_SECONDS):
                return
        condition, reason = met
        self.exit_code, self.reason = condition.exit_code, reason
        self._driver.stop(reason, f"{reason[0].upper()}{reason[1:]}." if condition.published else None)
        seconds = _ENDED_SECONDS if condition.published else _DRAIN_SECONDS
        self._closed.wait(seconds)
        log.error("Exiting without a clean stop: %s, and connectors have not drained within %g s", reason, seconds)
        sys.stderr.flush()
        self._end(condition.exit_code)

    def _met(self) -> tuple[EndCondition, str] | None:
        for condition in self._conditions:
            if reason := condition.reason():
                return condition, reason
        return None


def _start_time(process: int) -> str | None:
    """Return a process's start time in clock ticks, which reveals a reused process id; None if there is no such process."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] == "Z" else fields[19]
