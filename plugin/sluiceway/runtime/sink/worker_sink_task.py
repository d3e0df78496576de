"""Runs a sink task: consume, convert, transform, put, and commit the offsets that the task reports as safe."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress

from sluiceway.api import TopicPartition
from sluiceway.errors import FencedError, RetriableError
from sluiceway.runtime.interrupts import Abandoned, Interrupted
from sluiceway.runtime.sink.sink_records import SinkBatch
from sluiceway.runtime.sink.sink_task_builder import SinkTaskParts, build_sink_task
from sluiceway.runtime.sink.task_consumer import starts_of
from sluiceway.runtime.sink.task_wait import POLL_SECONDS
from sluiceway.runtime.task import TaskCommand, TaskResult, TaskServices, TaskSpec
from sluiceway.runtime.worker_task import BACKOFF_SECONDS, WorkerTask, log_errors, run_task
from sluiceway.storage.model import State

log = logging.getLogger(__name__)


def run_sink(spec: TaskSpec, services: TaskServices) -> TaskResult:
    """Run a sink task until it must stop, reaches the end offsets it started with (``spec.bounded``) or fails.

    Runs on an executor, in the calling thread. A failure of the task is reported and returned, not raised.
    """
    return run_task(_create, spec, services)


def _create(spec: TaskSpec, services: TaskServices, resources: ExitStack) -> WorkerSinkTask:
    return WorkerSinkTask(spec, services, resources, build_sink_task(spec, services, resources))


class WorkerSinkTask(WorkerTask):
    """A sink task and what it runs with."""

    def __init__(self, spec: TaskSpec, services: TaskServices, resources: ExitStack, parts: SinkTaskParts) -> None:
        super().__init__(spec, services, resources)
        self._task = parts.task
        self._context = parts.context
        self._consumer = parts.consumer
        self._subscription = parts.subscription
        self._listener = parts.listener
        self._converter = parts.converter
        self._chain = parts.chain
        self._tolerance = parts.tolerance
        self._errant_record_reporter = parts.errant_record_reporter
        self._offsets = parts.offsets
        self._wait = parts.wait
        self._batch_size = parts.batch_size
        self._end_offsets: dict[TopicPartition, int] = {}
        self._started = False

    def run(self) -> TaskResult:
        try:
            with suppress(Interrupted):  # the task must stop while it waits
                self._start()
                self._move_records()
            self._close(commit=True)
        except Abandoned:
            self._abandon()
        except Exception as error:  # noqa: BLE001 (the task's outermost boundary)
            self._fail(error)
        return self._result

    def _start(self) -> None:
        self._task.initialize(self._context)
        self._started = True
        self._task.start(self._spec.config)
        topics = self._subscription.find_topics(self._consumer)
        if self._spec.bounded:
            self._end_offsets = self._consumer.end_offsets(topics)
        self._subscription.subscribe(self._consumer, self._listener)

    def _move_records(self) -> None:
        """Move records until the task must stop or reaches its end."""
        while True:
            try:
                if not self._obey() or (self._spec.bounded and self._at_end()):
                    return
                self._move_batch()
            except Interrupted:  # by a command, which _obey now carries out
                continue

    def _move_batch(self) -> None:
        consumer = self._consumer
        messages = consumer.poll(self._context.take_timeout(POLL_SECONDS), self._batch_size.size)
        self._listener.take_lost()  # poll() returned no messages of these
        try:
            batch = self._converter.convert(messages)
            batch.transform(self._chain, self._tolerance)
            if isinstance(batch.failure, Interrupted):
                raise batch.failure
            self._drop_lost(batch)
            consumer.positions.read(batch.starts, batch.ends)
            self._put(batch)
        except Interrupted:  # the batch was not put: read all of it again
            consumer.seek(starts_of(messages))
            raise
        self._offsets.delivered(batch)
        self._result.records += len(batch.records)
        self._rewind(self._context.take_rewinds())
        with self._wait.task_call():  # poll_deliveries() runs the callbacks of the task's reports
            self._tolerance.poll_deliveries()
            if batch.failure is not None:
                raise batch.failure
            self._offsets.commit_if_due()
        self._subscription.refresh_if_due(consumer, self._listener)

    def _put(self, batch: SinkBatch) -> None:
        """Call ``put`` until it succeeds. Raises Interrupted if the task gets another command before that."""
        default = BACKOFF_SECONDS[0]
        while True:
            started = time.monotonic()
            try:
                with self._wait.task_call():
                    self._task.put(batch.records)
                if self._errant_record_reporter is not None:
                    self._errant_record_reporter.check()
                self._batch_size.took(len(batch.records), time.monotonic() - started)
                return
            except RetriableError as error:
                seconds = self._context.take_timeout(default)
                log.warning("put() of %d records failed; retrying in %.1f s: %s", len(batch.records), seconds, error)
            default = min(default * 2, BACKOFF_SECONDS[1])
            self._wait(seconds)
            self._drop_lost(batch)

    def _drop_lost(self, batch: SinkBatch) -> None:
        """Drop the records of partitions that were lost during a wait."""
        if lost := self._listener.take_lost():
            batch.drop(lost)

    def _rewind(self, offsets: Mapping[TopicPartition, int]) -> None:
        if offsets:
            self._consumer.seek(offsets)
            self._offsets.rewound(offsets)

    def _at_end(self) -> bool:
        """Return True once every assigned partition was read to the end offset it had at the start."""
        at_end, current = self._consumer.at_end, self._offsets.current_offsets
        if not self._subscription.topics:
            return True
        return self._consumer.joined and all(
            partition in at_end or current.get(partition, 0) >= self._end_offsets.get(partition, 0)
            for partition in self._consumer.assignment
        )

    def _pause(self) -> None:
        with self._wait.task_call():
            self._offsets.commit_and_wait()
        self._consumer.pause()
        self._reporter.report(State.PAUSED)
        self._running = False
        while self._control.command() is TaskCommand.PAUSE:
            self._consumer.idle(POLL_SECONDS)
        self._consumer.resume()

    def _close_abandoned(self) -> None:
        self._close(commit=False)

    def _close_failed(self, error: Exception) -> None:
        self._close(commit=not isinstance(error, FencedError))

    def _close(self, *, commit: bool) -> None:
        """Commit, close the task's partitions, stop the task and leave the group, even if one of these steps fails.

        Raises Abandoned if that command comes during the commit; then call it again with ``commit=False``.
        """
        with self._wait.task_call():
            if self._started:
                partitions = self._consumer.assignment
                if commit:
                    log_errors("The last commit", self._offsets.commit_and_wait)
                if partitions:
                    _uninterrupted("The task's close()", self._task.close, partitions)
                _uninterrupted("The task's stop()", self._task.stop)
            self._resources.close()


def _uninterrupted(what: str, call: Callable[..., object], *arguments: object) -> None:
    """Call a method of the task. It may report records and be interrupted by a full dead letter queue; closing continues."""
    try:
        log_errors(what, call, *arguments)
    except (Interrupted, Abandoned):
        log.warning("%s was interrupted while it reported a record", what)
