"""Requests executors again from a standalone master that was restarted. Runs on the driver, on the application watch's thread.

With dynamic allocation, a master gives an application no executors until Spark's allocation manager has told it how many. The
master does not keep that number in its recovery state, and the manager sends it only when it changes. So a recovered master would
never replace a lost executor.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from sluiceway.java.numbers import whole_number
from sluiceway.spark.elastic import DYNAMIC, INITIAL

if TYPE_CHECKING:
    from pyspark import SparkContext

log = logging.getLogger(__name__)

_SECONDS = 4.0  # longer than a master takes to replace an executor, and between two requests
_CORES, _TASK_CPUS = "spark.executor.cores", "spark.task.cpus"
_MINIMUM, _MAXIMUM = "spark.dynamicAllocation.minExecutors", "spark.dynamicAllocation.maxExecutors"


class ExecutorRequests:
    """Requests executors while an application has had fewer slots than tasks for some seconds.

    Args:
        request: requests a total number of executors.
        conf: the application's Spark settings.
        clock: monotonic seconds.
    """

    def __init__(
        self, request: Callable[[int], None], conf: Mapping[str, str], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._request = request
        self._conf = conf
        self._clock = clock
        self._due: float | None = None

    def check(self, slots: int | None, tasks: int) -> None:
        """Request executors if it is time to. ``slots`` is None if it is unknown."""
        if slots is None or slots >= tasks or self._conf.get(DYNAMIC, "").strip().lower() != "true":
            self._due = None
            return
        now = self._clock()
        if self._due is None:
            self._due = now + _SECONDS
        elif now >= self._due:
            self._due = now + _SECONDS
            total = executors_for(tasks, self._conf)
            log.info("The application has %d slots for %d tasks; requesting %d executors again", slots, tasks, total)
            self._request(total)


def executors_for(tasks: int, conf: Mapping[str, str]) -> int:
    """Return the number of executors that Spark's allocation manager aims at with this many tasks."""
    each = max(_number(conf, _CORES, 1) // _number(conf, _TASK_CPUS, 1), 1)
    least = max(_number(conf, _MINIMUM, 0), _number(conf, INITIAL, 0))
    wanted = max(-(-tasks // each), least)
    return min(wanted, _number(conf, _MAXIMUM, wanted))


def request_executors(context: SparkContext, total: int) -> None:
    """Tell the cluster manager the total number of executors that the application needs."""
    jvm = context._jvm
    try:
        if jvm is not None:
            nowhere = jvm.org.apache.spark.api.python.PythonUtils.toScalaMap({})
            context._jsc.sc().requestTotalExecutors(total, 0, nowhere)
    except Exception as error:  # noqa: BLE001 (any Py4J error means that Spark can no longer be reached)
        log.warning("Spark cannot request executors: %s", error)


def _number(conf: Mapping[str, str], key: str, default: int) -> int:
    number = whole_number(conf.get(key, "").strip())
    return default if number is None else number
