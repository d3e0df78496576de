"""Launches each task as a Spark job with a single partition, submitted from a thread of its own.

Tasks that read or write DataFrames run in that thread instead, because only the driver has a Spark session.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from typing import TYPE_CHECKING

from sluiceway.metrics.publisher import MetricsTarget, publishing
from sluiceway.runtime.task import TaskResult
from sluiceway.spark.decommissions import Decommissions
from sluiceway.spark.elastic import DYNAMIC
from sluiceway.spark.lost_task import lost_task
from sluiceway.spark.rounds.driver_task import run_on_driver, runs_on_driver
from sluiceway.spark.slot_usage import SlotUsage
from sluiceway.worker.executor import TaskAssignment, Work, run_partition
from sluiceway.worker.task_launcher import in_thread
from sluiceway.worker.task_watch import Slot

if TYPE_CHECKING:
    from pyspark import SparkContext

log = logging.getLogger(__name__)


class SparkLauncher:
    """See ``TaskLauncher``. Runs on the driver. ``metrics`` is where the processes that it starts send theirs."""

    def __init__(self, context: SparkContext, metrics: MetricsTarget | None = None) -> None:
        self._metrics = metrics
        self.last_loss: str | None = None
        """Reason of the last lost task."""
        self._context = context
        self._usage = SlotUsage(context)
        self._decommissions = Decommissions(context)

    @property
    def launched(self) -> int:
        """Number of tasks that have been launched and have not ended."""
        return self._usage.launched

    def launch(self, work: Work) -> Future[TaskResult]:
        if isinstance(work, TaskAssignment) and runs_on_driver(work):
            return in_thread(lambda: run_on_driver(work, self._context), work)
        self._usage.add(work.job)
        future = in_thread(lambda: self._run(work), work)
        future.add_done_callback(lambda _: self._usage.discard(work.job))
        return future

    def shareable(self, assignment: TaskAssignment) -> bool:
        return not runs_on_driver(assignment)

    def has_free_slot(self) -> bool:
        from sluiceway.spark.session import slots

        try:
            if self._context.getConf().get(DYNAMIC) == "true":
                return True
            have = slots(self._context)
            return have == 0 or have > self._usage.launched  # 0: no executor has registered yet
        except Exception as error:  # noqa: BLE001 (any Py4J error means that Spark can no longer be reached)
            log.debug("Spark does not say how many slots the application has: %s", error)
            return False

    def _run(self, work: Work) -> TaskResult:
        from py4j.protocol import Py4JJavaError

        try:
            self._context.setJobGroup(work.job, work.title, interruptOnCancel=True)
            run = functools.partial(run_first_attempt, metrics=self._metrics)
            return self._context.parallelize([work], 1).mapPartitions(run).collect()[0]
        except Py4JJavaError as error:
            lost = lost_task(_java_message(error))
            self.last_loss = str(lost)
            raise lost from error

    def cancel(self, work: Work) -> None:
        from sluiceway.spark.session import cancel_jobs

        try:
            cancel_jobs(self._context, work.job)  # the task's thread may not have submitted its job yet
        except Exception as error:  # noqa: BLE001 (any Py4J error means that Spark can no longer be reached)
            log.warning("%s could not be canceled because Spark does not answer: %s", work.title, error)

    def slot(self, work: Work) -> Slot:
        return self._usage.slot(work.job)

    def must_move(self, work: Work) -> str | None:
        executor = self._decommissions.executor(work.job)
        if executor is None:
            return None
        return f"Its executor {executor} is being decommissioned; the task starts again on another one."

    def slots_advice(self) -> str:
        from sluiceway.spark.session import slots

        try:
            have, in_use = slots(self._context), self._usage.in_use()
            elastic = self._context.getConf().get(DYNAMIC) == "true"
        except Exception as error:  # noqa: BLE001 (any Py4J error means that Spark can no longer be reached)
            return f"Spark does not say how many slots the application has: {error}"
        if not have:
            return (
                f"the application has no executors on {self._context.master}. They may still be starting; otherwise, check that "
                "the cluster has free cores and memory, and read the executors' logs."
            )
        if in_use < have:
            return (
                f"the application has {have} slot(s) on {self._context.master}, {in_use} in use, but Spark has not started the "
                "task. The driver's machine may be busy, or Spark excludes executors on which tasks have failed "
                "(spark.excludeOnFailure.enabled)."
            )
        if elastic:
            return (
                f"the application has {have} slot(s) on {self._context.master}, all in use. Spark has requested more executors. "
                "If they do not start, check that the cluster has free cores and memory, and whether "
                "spark.dynamicAllocation.maxExecutors or spark.cores.max is too low; or lower tasks.max."
            )
        return (
            f"the application has {have} slot(s) on {self._context.master}, all in use. Each task holds one for as long as it "
            "runs. Use local[N] with a larger N, or give the application more executor cores (spark.cores.max, "
            "spark.executor.instances, spark.executor.cores), or lower tasks.max."
        )

    def has_ended(self) -> bool:
        return is_stopped(self._context)


def is_stopped(context: SparkContext) -> bool:
    """Return True once the Spark application has ended. A JVM that does not answer is not reported here."""
    try:
        return bool(context._jsc.sc().isStopped())
    except Exception as error:  # noqa: BLE001 (any Py4J error means that Spark can no longer be reached)
        log.debug("Spark does not say whether its context is stopped: %s", error)
        return False


def run_first_attempt(works: Iterable[Work], metrics: MetricsTarget | None = None) -> Iterator[TaskResult]:
    """Run what an RDD's single partition holds, unless Spark has started it before. Runs on the executor.

    Spark starts a task again by itself after it has lost the executor through no fault of the task. The first process may
    still run, on a host that is cut off. Only the driver can start the task with a new generation and report that.
    """
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None or context.attemptNumber() == 0:
        with publishing(metrics):
            yield from run_partition(works)
        return
    for work in works:
        reason = "Spark lost the task's executor or its host and started the task a second time, which the driver must do"
        yield TaskResult(work.id, lost=True, second_attempt=True, trace=reason)


def _java_message(error: Exception) -> str:
    """Return the message of the Java exception behind a Py4JJavaError, whose own first line only names the called method."""
    try:
        return str(error.java_exception.getMessage() or error.java_exception.toString())  # type: ignore[attr-defined]
    except Exception:  # noqa: BLE001 (any Py4J error means that Spark can no longer be reached)
        return str(error)
