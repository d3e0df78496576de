"""Runs a sink task that writes DataFrames: plan a round, read and convert it on executors, write it, commit its offsets.

The task is a member of the connector's consumer group, which assigns partitions and checks the commits, but fetches nothing:
the executors read the planned offsets with consumers of their own. Runs in a thread of the driver.
"""

from __future__ import annotations

import concurrent.futures
import logging
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sluiceway import discovery
from sluiceway.api import TopicPartition
from sluiceway.api.data_frames import DataFrameSinkTask
from sluiceway.config.connector import CONNECTOR_CLASS, CONNECTOR_VERSION
from sluiceway.errors import ConfigError, RetriableError
from sluiceway.runtime.interrupts import Abandoned, Interrupted
from sluiceway.runtime.sink.consumer_settings import sink_consumer
from sluiceway.runtime.sink.sink_task_context import WorkerSinkTaskContext
from sluiceway.runtime.sink.subscription import Subscription
from sluiceway.runtime.sink.task_consumer import TaskConsumer
from sluiceway.runtime.task import TaskCommand, TaskResult, TaskServices, TaskSpec
from sluiceway.runtime.worker_task import WorkerTask, log_errors, run_task
from sluiceway.spark.rounds.jobs import RoundJobs, RoundRetries
from sluiceway.spark.rounds.positions import NextOffsets
from sluiceway.spark.rounds.ranges import OffsetRange, RoundPlanner
from sluiceway.spark.rounds.sink_round import RangeResult, SinkRound
from sluiceway.storage.model import State
from sluiceway.worker.executor import TaskAssignment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

_POLL_SECONDS = 0.2
_LIST_SECONDS = 1.0  # between two looks at the partitions' end offsets
_STOP_SHARE = 0.5  # of task.shutdown.graceful.timeout.ms, for a write that has begun


def run_sink_rounds(assignment: TaskAssignment, spark: SparkSession, spec: TaskSpec, services: TaskServices) -> TaskResult:
    """Run the task until it must stop, reaches the end offsets it started with (``spec.bounded``) or fails."""

    def create(spec: TaskSpec, services: TaskServices, resources: ExitStack) -> SinkRoundsTask:
        return SinkRoundsTask(assignment, spark, spec, services, resources)

    return run_task(create, spec, services)


@dataclass(slots=True)
class _RunningRound:
    round: SinkRound
    future: Future[Sequence[RangeResult]]
    committed: bool = False


class SinkRoundsTask(WorkerTask):
    """A sink task that writes DataFrames, and what it runs with."""

    def __init__(
        self, assignment: TaskAssignment, spark: SparkSession, spec: TaskSpec, services: TaskServices, resources: ExitStack
    ) -> None:
        super().__init__(spec, services, resources)
        self._executor_spec = assignment.spec  # without secrets: executors resolve references themselves
        self._shutdown_seconds = spec.worker.number("task.shutdown.graceful.timeout.ms") / 1000
        self._task = _new_task(spec.config)
        self._task.spark = spark
        self._jobs = RoundJobs(spark, f"Connect task {spec.id}")
        resources.callback(self._jobs.close)
        self._subscription = Subscription(spec.config, services.waits.waiting)
        settings, _ = sink_consumer(spec)
        self._consumer = TaskConsumer(settings, 1)
        resources.callback(log_errors, "Leaving the consumer group", self._consumer.close, self._shutdown_seconds)
        self._context = WorkerSinkTaskContext(spec.config, self._consumer)
        self._positions = NextOffsets(spec, settings)
        self._end_offsets: dict[TopicPartition, int] = {}
        self._topics: set[str] = set()
        self._list_at = 0.0
        self._running_round: _RunningRound | None = None
        self._retries = RoundRetries()
        self._started = False

    def run(self) -> TaskResult:
        try:
            with suppress(Interrupted):
                self._start()
                while self._obey() and not (self._spec.bounded and self._at_end()):
                    with suppress(Interrupted):  # by a command, which _obey then carries out
                        self._step()
            self._close()
        except Abandoned:
            self._abandon()
        except Exception as error:  # noqa: BLE001 (the task's outermost boundary)
            self._fail(error)
        return self._result

    def _start(self) -> None:
        self._task.initialize(self._context)
        self._started = True
        self._task.start(self._spec.config)
        self._planner = RoundPlanner(self._task.flush_size, self._task.rotate_seconds)
        topics = self._subscription.find_topics(self._consumer)
        if self._spec.bounded:
            self._end_offsets = self._consumer.end_offsets(topics)
        self._consumer.pause()  # executors fetch the records
        self._subscription.subscribe(self._consumer, self)

    # RebalanceListener: called while the consumer is polled.

    def on_partitions_assigned(self, partitions: frozenset[TopicPartition]) -> Mapping[TopicPartition, int]:
        starts = self._positions.assign(partitions)
        for partition, offset in starts.items():
            self._consumer.committed[partition] = offset
        if partitions:
            log.info("Assigned %s", ", ".join(f"{topic}-{number}" for topic, number in sorted(partitions)))
            self._task.open(partitions)
        return starts

    def on_partitions_revoked(self, partitions: frozenset[TopicPartition]) -> None:
        """Finish a round with these partitions first, so that its offsets can be committed."""
        running = self._running_round
        try:
            if running is not None and any(each.topic_partition in partitions for each in running.round.ranges):
                concurrent.futures.wait([running.future])
                self._commit_round(running)
        finally:
            self.on_partitions_lost(partitions)

    def on_partitions_lost(self, partitions: frozenset[TopicPartition]) -> None:
        self._positions.forget(partitions)
        if partitions:
            self._task.close(partitions)

    # The loop.

    def _step(self) -> None:
        self._consumer.idle(_POLL_SECONDS)
        self._subscription.refresh_if_due(self._consumer, self)
        now = time.monotonic()
        if now < self._list_at or not self._positions.offsets:
            return
        self._list_at = now + _LIST_SECONDS
        self._commit()
        ends = self._end_offsets if self._spec.bounded else self._positions.ends()
        ranges = self._planner.plan(self._positions.offsets, ends, now, at_once=self._spec.bounded)
        if ranges:
            self._run_round(ranges)
            self._list_at = 0.0

    def _run_round(self, ranges: list[OffsetRange]) -> None:
        """Write a round and commit its offsets. Raises Interrupted if a command ends it, and ConnectError."""
        self._report_topics(ranges)
        started = time.monotonic()
        round_ = SinkRound(self._task, self._executor_spec, ranges)
        running = self._running_round = _RunningRound(round_, self._jobs.submit(round_.run))
        try:
            self._wait_for(running)
            self._commit_round(running)
        except RetriableError as error:
            seconds = self._retries.failed(error)
            self._waits.failed("A round", error, seconds)
            self._idle_for(seconds)
            return
        finally:
            self._running_round = None
        self._retries.succeeded()
        self._waits.succeeded("A round")
        done = running.future.result()
        records = sum(result.records for result in done)
        log.info("Wrote a round of %d records in %.1f s: %s", records, time.monotonic() - started, ", ".join(map(str, ranges)))
        for result in done:
            result.check()
        if any(result.end < result.range.end for result in done):
            self._planner.ended_early()

    def _wait_for(self, running: _RunningRound) -> None:
        """Wait for the round's end while the task stays in its group; cancel the round if a command requires it."""
        deadline: float | None = None
        while not running.future.done():
            concurrent.futures.wait([running.future], _POLL_SECONDS)
            self._consumer.idle(0)
            command = self._control.command()
            if command is TaskCommand.STOP and deadline is None:
                deadline = time.monotonic() + _STOP_SHARE * self._shutdown_seconds
            # A write that has begun may have written part of the round, which would be repeated.
            late = deadline is not None and time.monotonic() > deadline
            if command is TaskCommand.ABANDON or (command is not TaskCommand.RUN and (late or not running.round.writing)):
                self._cancel(running.future, command)

    def _cancel(self, future: Future[Sequence[RangeResult]], command: TaskCommand) -> None:
        """Cancel a round. Raises Abandoned, and Interrupted unless the round has ended well after all."""
        log.info("Canceling a round that was not committed: the task must %s", command.value)
        self._jobs.cancel()
        if command is TaskCommand.ABANDON:
            raise Abandoned
        if not future.done() or future.exception() is not None:
            raise Interrupted

    def _commit_round(self, running: _RunningRound) -> None:
        """Commit the offsets of a round that has ended, unless that was done when its partitions were revoked."""
        done = running.future.result()
        if running.committed:
            return
        running.committed = True
        self._positions.moved({result.range.topic_partition: result.end for result in done})
        self._result.records += sum(result.records for result in done)
        self._commit()

    def _commit(self) -> None:
        """Commit the positions that the group does not have. A commit that fails is repeated by the next one."""
        known = self._consumer.committed
        behind = {each: offset for each, offset in self._positions.offsets.items() if known.get(each) != offset}
        self._consumer.commit(behind, wait=self._shutdown_seconds)

    def _report_topics(self, ranges: list[OffsetRange]) -> None:
        for topic in {each.topic for each in ranges} - self._topics:
            self._reporter.topic(topic)
            self._topics.add(topic)

    def _idle_for(self, seconds: float) -> None:
        """Wait while the task stays in its group. Raises Interrupted if the task gets another command."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if self._control.command() is not TaskCommand.RUN:
                raise Interrupted
            self._consumer.idle(min(left, _POLL_SECONDS))

    def _at_end(self) -> bool:
        if not self._subscription.topics:
            return True
        offsets = self._positions.offsets
        return self._consumer.joined and all(
            offset >= self._end_offsets.get(partition, 0) for partition, offset in offsets.items()
        )

    def _pause(self) -> None:
        self._reporter.report(State.PAUSED)
        self._running = False
        while self._control.command() is TaskCommand.PAUSE:
            self._consumer.idle(_POLL_SECONDS)

    def _close_abandoned(self) -> None:
        self._close()

    def _close_failed(self, error: Exception) -> None:
        self._close()

    def _close(self) -> None:
        """Cancel what runs, then stop the task and leave the group. The offsets of complete rounds are committed already."""
        self._jobs.cancel()
        if self._started:
            if self._consumer.assignment:
                log_errors("The task's close()", self._task.close, self._consumer.assignment)
            log_errors("The task's stop()", self._task.stop)
        self._resources.close()


def _new_task(config: Mapping[str, str]) -> DataFrameSinkTask:
    task_class = discovery.connector_class(config[CONNECTOR_CLASS], config.get(CONNECTOR_VERSION)).task_class
    if not issubclass(task_class, DataFrameSinkTask):
        raise ConfigError(CONNECTOR_CLASS, config[CONNECTOR_CLASS], "has no task that writes DataFrames")
    return task_class()
