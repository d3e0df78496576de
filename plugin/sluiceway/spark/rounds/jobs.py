"""Runs the Spark jobs of a task's rounds on a thread of their own, so that the task's loop can obey commands meanwhile."""

from __future__ import annotations

import concurrent.futures
import logging
import re
import uuid
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from sluiceway.backoff import Backoff
from sluiceway.errors import ConnectError, RetriableError
from sluiceway.runtime.worker_task import BACKOFF_SECONDS
from sluiceway.spark.lost_task import lost_task
from sluiceway.spark.session import activate, cancel_jobs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

T = TypeVar("T")

_CANCEL_SECONDS = 15.0
_MOST_RETRIES = 12  # about a minute
# Losses that another attempt may not meet: Spark's messages for executors and Python workers that have ended.
_LOST = re.compile(r"ExecutorLostFailure|Python worker exited unexpectedly|Python worker failed to connect back|FetchFailed")


class RoundJobs:
    """The Spark jobs of one task, in a job group for each round. One thread submits them; ``cancel`` may be called by any."""

    def __init__(self, spark: SparkSession, description: str) -> None:
        self._spark = spark
        self._description = description
        self._group = ""
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="round")
        self._running: Future[object] | None = None

    def submit(self, call: Callable[[], T]) -> Future[T]:
        """Call a function, which submits Spark jobs, on the jobs' thread."""
        group = self._group = uuid.uuid4().hex

        def run() -> T:
            activate(self._spark)
            self._spark.sparkContext.setJobGroup(group, self._description, interruptOnCancel=True)
            try:
                return call()
            except Exception as error:
                raise _explained(error) from error

        future = self._pool.submit(run)
        self._running = future  # type: ignore[assignment]
        return future

    def cancel(self) -> None:
        """Cancel the running round and wait until its jobs have ended."""
        if self._running is None or self._running.done():
            return
        try:
            cancel_jobs(self._spark.sparkContext, self._group)
        except Exception as error:  # noqa: BLE001 (any Py4J error means that Spark can no longer be reached)
            log.warning("A round could not be canceled because Spark does not answer: %s", error)
        concurrent.futures.wait([self._running], _CANCEL_SECONDS)

    def close(self) -> None:
        self.cancel()
        self._pool.shutdown(wait=False)


class RoundRetries:
    """Decides how long a task waits after a round that may succeed when it is repeated, and when the task fails."""

    def __init__(self) -> None:
        self._backoff = Backoff(*BACKOFF_SECONDS)

    def failed(self, error: RetriableError) -> float:
        """Return the seconds to wait. Raises ConnectError after too many failures in a row."""
        seconds = self._backoff.next()
        if (failures := self._backoff.failures) > _MOST_RETRIES:
            raise ConnectError(f"A round failed {failures} times in a row. The last reason: {error}") from error
        log.warning("A round failed; retrying in %.1f s: %s", seconds, error)
        return seconds

    def succeeded(self) -> None:
        self._backoff.reset()


def _explained(error: Exception) -> Exception:
    """Return a retriable error for a lost executor or Python worker, and for others from Spark one with a short message."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    if not isinstance(error, (Py4JError, PySparkException)):
        return error
    text = str(error)
    if _LOST.search(text):
        return RetriableError(f"Spark lost part of a round: {lost_task(text)}")
    return ConnectError(f"Spark: {_first_line(text)}")


def _first_line(text: str) -> str:
    """Return the line of a Spark error that names the cause, which follows Py4J's own first line."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    if lines and lines[0].startswith("An error occurred while calling") and len(lines) > 1:
        lines = lines[1:]
    caused = [line for line in lines if line.startswith("Caused by: ")]
    first = lines[0].removeprefix(": ") if lines else "no reason given"
    return f"{first} {caused[-1]}" if caused and caused[-1] not in first else first
