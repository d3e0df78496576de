"""Notices that a Spark application has ended or will get no more executors. Runs on the driver, on the watch's thread."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from sluiceway.spark.elastic import is_standalone
from sluiceway.spark.executor_requests import ExecutorRequests, request_executors
from sluiceway.spark.launcher import SparkLauncher, is_stopped
from sluiceway.spark.session import slots

if TYPE_CHECKING:
    from pyspark import SparkContext

log = logging.getLogger(__name__)


def application_ended(context: SparkContext, launcher: SparkLauncher, slots_timeout: float) -> Callable[[], str | None]:
    """Return a function that returns the reason once the application has ended or has lost its executors for good.

    A standalone master that was restarted without recovery never gives a running application executors again. Only a new
    application gets some. YARN and Kubernetes replace lost executors as soon as they have room.

    Args:
        slots_timeout: seconds without executors after which the application is given up, if tasks wait for them.
    """
    lost = LostExecutors(slots_timeout)
    master = context.master or ""
    forgets = is_standalone(master)
    conf = dict(context.getConf().getAll()) if forgets else {}
    requests = ExecutorRequests(lambda total: request_executors(context, total), conf)

    def reason() -> str | None:
        if is_stopped(context):
            because = f": {launcher.last_loss}" if launcher.last_loss else ""
            return f"the Spark application has ended{because}"
        if not forgets:
            return None
        have, tasks = _slots(context), launcher.launched
        requests.check(have, tasks)
        if lost(have, tasks):
            return (
                f"the Spark application has had no executors on {master} for {slots_timeout:g} s "
                "(sluiceway.slots.timeout.ms) although it had some before"
            )
        return None

    return reason


class LostExecutors:
    """Notices that an application that had slots has had none for ``timeout`` seconds while tasks wait for them."""

    def __init__(self, timeout: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._timeout = timeout
        self._clock = clock
        self._had_slots = False
        self._without_since: float | None = None

    def __call__(self, have: int | None, tasks: int) -> bool:
        """Return True if they are lost. ``have`` is the number of slots, None if it is unknown."""
        if have or have is None or not tasks:  # without tasks, Spark gives the executors back
            self._had_slots = self._had_slots or bool(have)
            self._without_since = None
            return False
        now = self._clock()
        if self._without_since is None:
            self._without_since = now
        return self._had_slots and now - self._without_since > self._timeout


def _slots(context: SparkContext) -> int | None:
    try:
        return slots(context)
    except Exception as error:  # noqa: BLE001 (any Py4J error means that Spark can no longer be reached)
        log.debug("Spark does not say how many slots it has: %s", error)
        return None
