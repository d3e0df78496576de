"""Runs a sink task: consume, convert, transform, put, and commit the offsets that the task reports as safe."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress

from sluiceway.api import NotColumnar, TopicPartition
from sluiceway.backoff import Backoff
from sluiceway.config.intervals import DLQ, LATE
from sluiceway.errors import DataError, FencedError, RetriableError
from sluiceway.kafka.clients import ConsumedMessage
from sluiceway.runtime.errors.processing_context import ConsumerRecord, ProcessingContext, Stage
from sluiceway.runtime.interrupts import Abandoned, Interrupted
from sluiceway.runtime.sink.polled import starts_of, times_of
from sluiceway.runtime.sink.sink_batches import SinkPart
from sluiceway.runtime.sink.sink_records import SinkBatch
from sluiceway.runtime.sink.sink_task_builder import SinkTaskParts, build_sink_task
from sluiceway.runtime.sink.task_wait import IDLE_POLL_SECONDS, POLL_SECONDS
from sluiceway.runtime.task import TaskCommand, TaskResult, TaskServices, TaskSpec
from sluiceway.runtime.worker_task import BACKOFF_SECONDS, WorkerTask, log_errors, run_task
from sluiceway.storage.model import State
from sluiceway.telemetry.task_spans import PUT, TRANSFORM

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
        self._batches = parts.batches
        self._tolerance = parts.tolerance
        self._errant_record_reporter = parts.errant_record_reporter
        self._offsets = parts.offsets
        self._wait = parts.wait
        self._batch_size = parts.batch_size
        self._interval = parts.interval
        self._end_offsets: dict[TopicPartition, int] = {}
        self._gone: frozenset[TopicPartition] = frozenset()
        """Partitions of which the task must not get the rest of the polled messages: lost, rewound or paused."""
        self._put_seconds = 0.0
        self._poll_seconds = POLL_SECONDS
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
        with self._spans.life("start"):
            self._task.initialize(self._context)
            self._started = True
            self._task.start(self._spec.config)
        topics = self._subscription.find_topics(self._consumer)
        if self._interval is not None:
            self._end_offsets = dict(self._interval.ends)
        elif self._spec.bounded:
            self._end_offsets = self._consumer.end_offsets(topics)
        self._subscription.subscribe(self._consumer, self._listener)

    def _move_records(self) -> None:
        """Move records until the task must stop or reaches its end."""
        while True:
            try:
                if not self._obey():
                    return
                if self._spec.bounded and self._at_end():
                    if self._subscription.lacks_topics(self._consumer):
                        self._refuse_wait()
                    if self._interval is not None or self._finished():  # an interval's run is checked when it has ended
                        return
                    continue
                self._move_batch()
            except Interrupted:  # by a command, which _obey now carries out
                continue

    def _finished(self) -> bool:
        """Commit what a bounded run has moved. Return False if the task wants to read records again.

        Raises why the task could not write them: else the run would end as a success without them.
        """
        if not self._commit_all():
            self._move_batch()  # for put() to say why records are not safe; a task may also hold them, such as in an open file
            if not self._at_end():
                return False
            self._commit_all()
        return True

    def _commit_all(self) -> bool:
        with self._wait.task_call():
            return self._offsets.commit_all()

    def _move_batch(self) -> None:
        consumer, began = self._consumer, time.monotonic()
        messages = consumer.poll(self._context.take_timeout(self._poll_seconds), self._batch_size.size)
        self._poll_seconds = POLL_SECONDS if messages or self._spec.bounded else IDLE_POLL_SECONDS
        self._listener.take_lost()  # poll() returned no messages of these
        if messages:
            self._metrics.took(len(messages), *times_of(messages))
        self._gone, self._put_seconds, before = frozenset(), 0.0, self._result.records
        parts = self._batches.parts(messages, one_topic=len({each.topic for each in consumer.assignment}) == 1)
        with self._spans.batch(time.monotonic() - began, len(messages), messages):
            for number, part in enumerate(parts):
                self._move_part(part, parts[number:])
        if self._interval is not None:
            self._refuse_late(self._interval.take_late())
            self._offsets.passed(self._interval.passed(consumer.assignment))
        self._batch_size.took(self._result.records - before, self._put_seconds)
        with self._wait.task_call():
            self._offsets.commit_if_due()
        self._metrics.caught_up()
        self._subscription.refresh_if_due(consumer, self._listener)

    def _move_part(self, part: SinkPart, left: Sequence[SinkPart]) -> None:
        """Convert, transform and put a part. ``left`` are this part and those after it."""
        if self._gone:
            part = part.without(self._gone)
            if not part.messages:
                return
        try:
            with self._spans.step(TRANSFORM, len(part.messages)):
                batch = self._batches.batch(part)
            with self._spans.step(PUT, len(batch)):
                batch, seconds = self._put(part, batch)
        except Interrupted:  # nothing of this part was put: read all of it and of those after it again
            starts = starts_of(*(each.messages for each in left))
            self._consumer.seek({partition: offset for partition, offset in starts.items() if partition not in self._gone})
            raise
        since = self._batches.put_since(batch)
        self._delivered(batch, seconds - sum(each.seconds for each in since))
        for each in since:
            self._metrics.took(len(each.messages), *each.messages.times)
            self._consumer.positions.read(each.batch.starts, each.batch.ends)
            self._delivered(each.batch, each.seconds)
        rewinds = self._context.take_rewinds()
        self._rewind(rewinds)
        with self._wait.task_call():  # poll_deliveries() runs the callbacks of the task's reports
            self._tolerance.poll_deliveries()
            if batch.failure is not None:
                raise batch.failure
        if len(left) > 1:
            self._withhold(left[1:], frozenset(rewinds))

    def _refuse_late(self, messages: Sequence[ConsumedMessage]) -> None:
        """Report the messages that came after their interval was closed. Raises ConnectError if errors are not tolerated."""
        for message in messages:
            record = ConsumerRecord.of(message)
            error = DataError(f"Its time belongs to an interval that was closed before it came ({LATE}={DLQ}).")
            description = f"the record at offset {record.offset} of {record.topic}-{record.partition} is late"
            self._tolerance.execute_failed(description, error, ProcessingContext(Stage.TASK_PUT, type(self._task), record))

    def _delivered(self, batch: SinkBatch, seconds: float) -> None:
        """Note that a batch was put, and the time that took."""
        self._offsets.delivered(batch)
        self._result.records += len(batch)
        self._metrics.called(seconds)
        self._metrics.gave(len(batch))

    def _withhold(self, left: Sequence[SinkPart], rewound: frozenset[TopicPartition]) -> None:
        """Take those messages out of the poll's other parts that the task must not get now."""
        self._gone |= rewound
        if paused := self._consumer.paused_by_task - self._gone:
            starts = starts_of(*(part.messages for part in left))
            self._consumer.seek({partition: offset for partition, offset in starts.items() if partition in paused})
            self._gone |= paused

    def _put(self, part: SinkPart, batch: SinkBatch) -> tuple[SinkBatch, float]:
        """Put a batch until that succeeds; return it and the seconds of the last call.

        Raises Interrupted if the task gets another command before that.
        """
        backoff = Backoff(*BACKOFF_SECONDS)
        self._drop_lost(batch)
        self._consumer.positions.read(batch.starts, batch.ends)
        while True:
            started = time.monotonic()
            try:
                with self._wait.task_call():
                    if batch.columns is None:
                        self._task.put(batch.records)
                    else:
                        self._task.put_columns(batch.columns)
                        self._batches.columns_put()
                if self._errant_record_reporter is not None:
                    self._errant_record_reporter.check()
                seconds = time.monotonic() - started
                self._put_seconds += seconds
                self._waits.succeeded("put()")
                return batch, seconds
            except NotColumnar as error:
                batch = self._batches.not_columnar(part, error)
                self._drop_lost(batch, self._gone)
                continue
            except RetriableError as error:
                seconds = self._context.take_timeout(backoff.next())
                log.warning("put() of %d records failed; retrying in %.1f s: %s", len(batch), seconds, error)
                self._waits.failed("put()", error, seconds)
            self._wait(seconds)
            self._drop_lost(batch)

    def _drop_lost(self, batch: SinkBatch, gone: frozenset[TopicPartition] = frozenset()) -> None:
        """Drop the records of partitions that were lost during a wait, and of those in ``gone``."""
        lost = self._listener.take_lost()
        self._gone |= lost
        if lost or gone:
            batch.drop(lost | gone)

    def _rewind(self, offsets: Mapping[TopicPartition, int]) -> None:
        if offsets:
            self._consumer.seek(offsets)
            self._offsets.rewound(offsets)

    def _at_end(self) -> bool:
        """Return True once every assigned partition was read to the end offset it had at the start, or its interval has.

        Without an interval, the end that the consumer reaches is enough: an open transaction may hold back what comes before the
        end offset. With one, its filter says what was passed.
        """
        at_end, current = self._consumer.at_end, self._offsets.current_offsets
        if not self._subscription.topics:
            return True

        def read(partition: TopicPartition) -> bool:
            end, moved = self._end_offsets.get(partition, 0), current.get(partition, 0)
            return moved >= end or (self._interval is None and partition in at_end)

        return self._consumer.joined and all(map(read, self._consumer.assignment))

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
                with self._spans.life("stop"):
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
