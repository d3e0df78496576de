"""Runs a source task that reads DataFrames: plan a round, produce its splits on executors, store its offsets.

A round's plan is stored before it is produced, each split's offsets with its records (exactly once: in one transaction), and
the round's end after all of them. After a failure, the stored offsets say which splits remain. Runs in a thread of the driver.
"""

from __future__ import annotations

import concurrent.futures
import logging
import time
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, TypeVar

from sluiceway.api.data_frames import DataFrameSourceTask, Offsets, Round
from sluiceway.errors import ConnectError, FencedError, RetriableError, trace_of
from sluiceway.runtime.interrupts import Abandoned, Interrupted, check_abandoned
from sluiceway.runtime.source.exactly_once_delivery import ExactlyOnceDelivery, TransactionLostError
from sluiceway.runtime.source.source_task_builder import build_source_task
from sluiceway.runtime.source.transaction_boundary import CommitAction
from sluiceway.runtime.task import TaskCommand, TaskResult, TaskServices, TaskSpec
from sluiceway.runtime.worker_task import WorkerTask, log_errors, run_task
from sluiceway.spark.rounds.jobs import RoundJobs, RoundRetries
from sluiceway.spark.rounds.source_round import SourceRound, SplitResult, produced_splits
from sluiceway.storage.model import State
from sluiceway.worker.executor import TaskAssignment
from sluiceway.worker.zombie_fencing import fence_slots

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

T = TypeVar("T")

_POLL_SECONDS = 0.2
_GRACE_SECONDS = 0.7  # that a round may take to end by itself once the task must pause or stop
_PAUSE_SECONDS = 1.0


def run_source_rounds(assignment: TaskAssignment, spark: SparkSession, spec: TaskSpec, services: TaskServices) -> TaskResult:
    """Run the task until it must stop, has no more rows (``spec.bounded``) or fails."""

    def create(spec: TaskSpec, services: TaskServices, resources: ExitStack) -> SourceRoundsTask:
        return SourceRoundsTask(assignment, spark, spec, services, resources)

    return run_task(create, spec, services)


class SourceRoundsTask(WorkerTask):
    """A source task that reads DataFrames, and what it runs with."""

    def __init__(
        self, assignment: TaskAssignment, spark: SparkSession, spec: TaskSpec, services: TaskServices, resources: ExitStack
    ) -> None:
        super().__init__(spec, services, resources)
        self._assignment = assignment  # without secrets: executors resolve references themselves
        self._parts = build_source_task(spec, services, resources)
        task = self._parts.task
        if not isinstance(task, DataFrameSourceTask):
            raise ConnectError(f"{type(task).__name__} does not read DataFrames.")
        self._task = task
        self._task.spark = spark
        self._jobs = RoundJobs(spark, f"Connect task {spec.id}")
        resources.callback(self._jobs.close)
        self._topics: set[str] = set()
        self._retries = RoundRetries()
        self._started = False

    @property
    def _exactly_once(self) -> bool:
        return isinstance(self._parts.delivery, ExactlyOnceDelivery)

    def run(self) -> TaskResult:
        try:
            with suppress(Interrupted):
                self._start()
                while self._obey():
                    with suppress(Interrupted):  # by a command, which _obey then carries out
                        if not self._step() and self._spec.bounded:
                            break
            self._close()
        except Abandoned:
            self._abandon()
        except TransactionLostError as error:
            self._lose(error)
        except Exception as error:  # noqa: BLE001 (the task's outermost boundary)
            if isinstance(error, FencedError) and self._exactly_once:
                self._lose(error)
            else:
                self._fail(error)
        return self._result

    def _start(self) -> None:
        self._parts.delivery.start()  # before the task reads its offsets, so that no earlier instance can change them later
        self._task.initialize(self._parts.context)
        self._started = True
        self._task.start(self._spec.config)
        self._fence_slots()

    def _step(self) -> bool:
        """Produce the next round. Return False if there is none; then wait for the next look."""
        try:
            round_ = self._wait_for(self._jobs.submit(self._task.next_round))
            if round_ is not None:
                self._produce(round_)
        except RetriableError as error:
            seconds = self._retries.failed(error)
            self._waits.failed("A round", error, seconds)
            self._fence_slots()
            self._control.wait(seconds)
            return True
        self._retries.succeeded()
        self._waits.succeeded("A round")
        if round_ is None and not self._spec.bounded:
            self._control.wait(self._task.poll_seconds)
        return round_ is not None

    def _produce(self, round_: Round) -> None:
        started = time.monotonic()
        done = self._done(round_)  # first: behind the transaction of a stored offset, the end of the topic is found later
        self._store(round_.begin)
        made = SourceRound(self._task.spark, self._assignment, round_)
        results = self._wait_for(self._jobs.submit(lambda: made.run(done)))
        records = sum(result.records for result in results)
        self._result.records += records
        self._report_topics(results)
        for result in results:
            result.check()
        # A split without rows was read by no executor, so its offsets are stored here.
        produced = {result.split for result in results}
        produced |= done
        rest = [pair for number, split in enumerate(round_.splits) if number not in produced for pair in split.offsets]
        self._store([*rest, *round_.end])
        log.info("Produced a round of %d records in %d splits in %.1f s", records, len(results), time.monotonic() - started)
        log_errors("The task's commit()", self._task.commit)

    def _done(self, round_: Round) -> set[int]:
        """Return the splits that need not be read because they have been produced. Executors check the others again."""
        splits = {number: split.offsets for number, split in enumerate(round_.splits)}
        return produced_splits(self._parts.context.offset_storage_reader, [], splits)

    def _store(self, offsets: Offsets) -> None:
        """Store offsets. Raises FencedError if the task was replaced, where exactly-once detects that."""
        for partition, offset in offsets:
            self._parts.offsets.add(partition, offset)
        while self._parts.offsets.pending:
            if not self._parts.delivery.apply(CommitAction.COMMIT):
                check_abandoned(self._control)
                self._control.wait(_POLL_SECONDS)

    def _wait_for(self, future: Future[T]) -> T:
        """Return a round's result; if a command comes, cancel the round soon and raise Interrupted or Abandoned."""
        deadline: float | None = None
        while not future.done():
            concurrent.futures.wait([future], _POLL_SECONDS)
            command = self._control.command()
            if command is TaskCommand.RUN:
                continue
            deadline = deadline or time.monotonic() + _GRACE_SECONDS
            if command is TaskCommand.ABANDON or time.monotonic() > deadline:
                self._cancel(command)
        return future.result()

    def _cancel(self, command: TaskCommand) -> None:
        log.info("Canceling a round: the task must %s. Splits that were not produced are produced later.", command.value)
        self._jobs.cancel()
        if command is TaskCommand.ABANDON:
            raise Abandoned
        self._fence_slots()
        raise Interrupted

    def _fence_slots(self) -> None:
        """End the transactions of splits that were cut off: until then, readers of the topic see nothing after them."""
        if self._exactly_once:
            fence_slots(self._spec.worker, self._spec.id, self._task.slots)

    def _report_topics(self, results: list[SplitResult]) -> None:
        for topic in {topic for result in results for topic in result.topics} - self._topics:
            self._reporter.topic(topic)
            self._topics.add(topic)

    def _pause(self) -> None:
        self._reporter.report(State.PAUSED)
        self._running = False
        while self._control.command() is TaskCommand.PAUSE:
            self._control.wait(_PAUSE_SECONDS)

    def _lose(self, error: Exception) -> None:
        """End without reporting a status: another instance of the task may already have reported its own."""
        log.warning("Stopping without writing anything more: %s", error)
        self._result.lost, self._result.trace = True, trace_of(error)
        self._close_abandoned()

    def _close_abandoned(self) -> None:
        self._close()

    def _close_failed(self, error: Exception) -> None:
        self._close()

    def _close(self) -> None:
        self._jobs.cancel()
        if self._started:
            log_errors("The task's stop()", self._task.stop)
        self._resources.close()
