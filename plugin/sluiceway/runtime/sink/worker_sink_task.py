"""Runs a sink task: consume, convert, transform, put, and commit the offsets that the task says are safe."""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

from sluiceway import discovery
from sluiceway.api import SinkRecord, SinkTask, TopicPartition
from sluiceway.config.connector import CONNECTOR_CLASS
from sluiceway.errors import ConfigError, FencedError, RetriableError, trace_of
from sluiceway.runtime.errors.errant_record_reporter import WorkerErrantRecordReporter
from sluiceway.runtime.errors.error_handling import retry_with_tolerance_operator
from sluiceway.runtime.errors.error_settings import ErrorSettings
from sluiceway.runtime.errors.retry_with_tolerance import RetryWithToleranceOperator
from sluiceway.runtime.garbage import raise_gc_threshold
from sluiceway.runtime.interrupts import Abandoned, Interrupted, check_abandoned
from sluiceway.runtime.sink.batch_size import BatchSize
from sluiceway.runtime.sink.offset_commits import SinkOffsetCommitter
from sluiceway.runtime.sink.sink_records import SinkBatch, SinkRecordConverter
from sluiceway.runtime.sink.sink_task_context import WorkerSinkTaskContext
from sluiceway.runtime.sink.subscription import Subscription
from sluiceway.runtime.sink.task_consumer import TaskConsumer, sink_consumer, starts_of
from sluiceway.runtime.task import TaskCommand, TaskResult, TaskServices, TaskSpec
from sluiceway.runtime.task_converters import Converters, task_converters
from sluiceway.runtime.transforms.transformation_chain import TransformationChain, chain_of
from sluiceway.storage.model import State

log = logging.getLogger(__name__)

_BUSY_PART = 0.1  # of max.poll.interval.ms, for one put
_MAX_POLL_INTERVAL = "300000"
_POLL_SECONDS = 0.2
_BACKOFF_SECONDS = (0.1, 10.0)


def run_sink(spec: TaskSpec, services: TaskServices) -> TaskResult:
    """Run a sink task until it is told to stop, has come to the ends seen at its start (``spec.bounded``) or fails.

    Runs on an executor, in the calling thread. Never raises for a task's failure: it is reported and returned.
    """
    raise_gc_threshold()
    return _SinkLoop(spec, services).run()


class _SinkLoop:
    def __init__(self, spec: TaskSpec, services: TaskServices) -> None:
        self._spec = spec
        self._control = services.control
        self._reporter = services.reporter
        self._result = TaskResult(spec.id)
        self._shutdown_seconds = spec.worker.number("task.shutdown.graceful.timeout.ms") / 1000
        self._targets: dict[TopicPartition, int] = {}
        self._gone: frozenset[TopicPartition] = frozenset()
        self._running = False
        self._in_task = False
        self._task: SinkTask | None = None
        self._consumer: TaskConsumer | None = None
        self._chain: TransformationChain[SinkRecord] = TransformationChain()
        self._converters: Converters | None = None
        self._tolerance: RetryWithToleranceOperator | None = None

    def run(self) -> TaskResult:
        try:
            with suppress(Interrupted):  # told to stop while the task waited
                self._start()
                self._move()
            self._close(commit=True)
        except Abandoned:
            log.warning("Abandoned: stopping without a commit")
            self._close(commit=False)
        except Exception as error:  # noqa: BLE001 (the task's outermost boundary)
            self._fail(error)
        return self._result

    def _start(self) -> None:
        spec, config = self._spec, self._spec.config
        self._converters = converters = task_converters(config, spec.worker)
        # A record that may go through the chain once more must not have been changed by the first time.
        self._chain = chain_of(config, in_place=not ErrorSettings.of(config).retry_seconds)
        self._subscription = Subscription(config)
        task_class = discovery.connector_class(config[CONNECTOR_CLASS]).task_class
        if not issubclass(task_class, SinkTask):
            raise ConfigError(CONNECTOR_CLASS, config[CONNECTOR_CLASS], "is not a sink connector")
        self._tolerance = tolerance = retry_with_tolerance_operator(spec, self._wait)
        self._reader = SinkRecordConverter(converters, tolerance, self._reporter.topic)
        settings, most = sink_consumer(spec)
        self._batch_size = BatchSize(most, float(settings.get("max.poll.interval.ms", _MAX_POLL_INTERVAL)) / 1000 * _BUSY_PART)
        self._consumer = consumer = TaskConsumer(settings, self, most)
        task = task_class()
        self._errant = WorkerErrantRecordReporter(tolerance, converters) if tolerance.settings.reports else None
        self._context = WorkerSinkTaskContext(config, consumer, self._errant)
        self._commits = SinkOffsetCommitter(
            task,
            consumer,
            self._context,
            spec.worker.number("offset.flush.interval.ms") / 1000,
            settled=self._settled,
            patience=spec.worker.number("offset.flush.timeout.ms") / 1000,
            last_patience=self._shutdown_seconds,
        )
        task.initialize(self._context)
        self._task = task
        task.start(config)
        topics = self._subscription.start(consumer)
        if spec.bounded:
            self._targets = consumer.end_offsets(topics)
        self._subscription.subscribe(consumer)

    def _move(self) -> None:
        """Move records until the order is STOP, or the end is reached."""
        while True:
            try:
                if not self._obey() or (self._spec.bounded and self._at_targets()):
                    return
                self._move_batch()
            except Interrupted:  # the next turn obeys the order that came
                continue

    def _move_batch(self) -> None:
        assert self._consumer is not None and self._tolerance is not None  # noqa: S101, PT018 (start made them)
        consumer, tolerance, commits = self._consumer, self._tolerance, self._commits
        messages = consumer.poll(self._context.take_timeout(_POLL_SECONDS), self._batch_size.size)
        self._gone = frozenset()
        try:
            batch = self._reader.read(messages)
            batch.transform(self._chain, tolerance)
            if isinstance(batch.failure, Interrupted):
                raise batch.failure
            self._drop_gone(batch)
            consumer.positions.read(batch.starts, batch.ends)
            self._put(batch)
        except Interrupted:  # by another order, while something was waited for: all of it is read again
            consumer.seek(starts_of(messages))
            raise
        commits.took(batch)
        self._result.records += len(batch.records)
        self._rewind(self._context.take_rewinds())
        with self._task_call():  # the callbacks of its reports are called here, too
            tolerance.serve()
            if batch.failure is not None:
                raise batch.failure
            commits.commit_if_due()
        self._subscription.refresh_if_due(consumer)

    @contextmanager
    def _task_call(self) -> Iterator[None]:
        """Mark that the task is inside one of its own calls: see ``_wait``. Only STOP interrupts it there, never PAUSE."""
        before, self._in_task = self._in_task, True
        try:
            yield
        finally:
            self._in_task = before

    def _put(self, batch: SinkBatch) -> None:
        """Give a batch to the task until it takes it. Raises Interrupted if another order comes first."""
        assert self._task is not None  # noqa: S101 (start made it)
        default = _BACKOFF_SECONDS[0]
        while True:
            started = time.monotonic()
            try:
                with self._task_call():
                    self._task.put(batch.records)
                self._check_reported()
                self._batch_size.took(len(batch.records), time.monotonic() - started)
                return
            except RetriableError as error:
                seconds = self._context.take_timeout(default)
                log.warning("put of %d records failed and is tried again in %.1f s: %s", len(batch.records), seconds, error)
            default = min(default * 2, _BACKOFF_SECONDS[1])
            self._wait(seconds)
            self._drop_gone(batch)

    def _drop_gone(self, batch: SinkBatch) -> None:
        """Leave out partitions that were lost while something was waited for."""
        if self._gone:
            batch.drop(self._gone)
            self._gone = frozenset()

    def _wait(self, seconds: float) -> None:
        """Wait with everything paused, in the group still; with 0, only look for orders. Raises Interrupted, Abandoned.

        A task that waits inside one of its own calls must not be given or lose partitions meanwhile: then nothing is polled.
        """
        until = time.monotonic() + seconds
        polls = seconds > 0 and not self._in_task and self._consumer is not None
        if polls and self._consumer is not None:
            self._consumer.pause()
        try:
            while True:
                order = self._control.command()
                if order is TaskCommand.ABANDON:
                    raise Abandoned
                if order is TaskCommand.STOP or (order is TaskCommand.PAUSE and not self._in_task):
                    raise Interrupted
                left = until - time.monotonic()
                if left <= 0:
                    return
                if polls and self._consumer is not None:
                    self._consumer.idle(min(left, _POLL_SECONDS))
                else:
                    self._control.wait(min(left, _POLL_SECONDS))
        finally:
            if polls and self._consumer is not None:
                self._consumer.resume()

    def _check_reported(self) -> None:
        if self._errant is not None:
            self._errant.check()

    def _settled(self, seconds: float) -> bool:
        """See ``SinkOffsetCommitter``; what the task reported in ``pre_commit`` counts, too."""
        assert self._tolerance is not None  # noqa: S101 (start made it)
        self._check_reported()
        return self._tolerance.settle(seconds, functools.partial(check_abandoned, self._control))

    def _rewind(self, offsets: Mapping[TopicPartition, int]) -> None:
        if offsets:
            assert self._consumer is not None  # noqa: S101 (start made it)
            self._consumer.seek(offsets)
            self._commits.rewound(offsets)

    def _at_targets(self) -> bool:
        """Whether every assigned partition was read to the end it had at the start."""
        assert self._consumer is not None  # noqa: S101 (start made it)
        at_end, taken = self._consumer.at_end, self._commits.taken
        if not self._subscription.topics:
            return True
        return self._consumer.joined and all(
            partition in at_end or taken.get(partition, 0) >= self._targets.get(partition, 0)
            for partition in self._consumer.assignment
        )

    def _obey(self) -> bool:
        """Follow orders: wait here while paused; False to stop."""
        order = self._control.command()
        if order is TaskCommand.PAUSE:
            self._pause()
            order = self._control.command()
        if order is TaskCommand.ABANDON:
            raise Abandoned
        if order is TaskCommand.RUN and not self._running:
            self._reporter.report(State.RUNNING)
            self._running = True
        return order is not TaskCommand.STOP

    def _pause(self) -> None:
        """Commit, and wait for another order; the group membership is kept."""
        assert self._consumer is not None  # noqa: S101 (start made it)
        with self._task_call():
            self._commits.commit_finally()
        self._consumer.pause()
        self._reporter.report(State.PAUSED)
        self._running = False
        while self._control.command() is TaskCommand.PAUSE:
            self._consumer.idle(_POLL_SECONDS)
        self._consumer.resume()

    def assigned(self, partitions: frozenset[TopicPartition]) -> Mapping[TopicPartition, int]:
        """See ``RebalanceListener``."""
        if self._task is None or not partitions:
            return {}
        log.info("Assigned %s", _names(partitions))
        with self._task_call():
            self._task.open(partitions)
        rewinds = self._context.take_rewinds()
        self._commits.rewound({partition: offset for partition, offset in rewinds.items() if partition in partitions})
        return rewinds

    def revoked(self, partitions: frozenset[TopicPartition]) -> None:
        """See ``RebalanceListener``."""
        if partitions:
            with self._task_call():
                self._commits.commit_finally(partitions)
            self.lost(partitions)

    def lost(self, partitions: frozenset[TopicPartition]) -> None:
        """See ``RebalanceListener``."""
        if self._task is None or not partitions:
            return
        log.info("Giving up %s", _names(partitions))
        self._gone |= partitions
        self._commits.forget(partitions)
        with self._task_call():
            self._task.close(partitions)

    def _fail(self, error: Exception) -> None:
        log.error("Task threw an uncaught and unrecoverable exception", exc_info=error)
        self._result.failed, self._result.trace = True, trace_of(error)
        try:
            _quietly("Reading the task's orders", check_abandoned, self._control)
            self._close(commit=not isinstance(error, FencedError))
        except Abandoned:  # the task's status is a newer driver's by now
            log.warning("Abandoned: stopping without a commit")
            self._close(commit=False)
        else:
            self._reporter.report(State.FAILED, self._result.trace)

    def _close(self, *, commit: bool) -> None:
        """Commit, close partitions, stop the task, leave the group; each whatever happened before.

        Raises Abandoned if that comes during the commit; call it again then, without one.
        """
        self._in_task = True
        if self._task is not None and self._consumer is not None:
            open_partitions = self._consumer.assignment
            if commit:
                _quietly("The last commit", self._commits.commit_finally)
            if open_partitions:
                _uninterrupted("The task's close()", self._task.close, open_partitions)
            _uninterrupted("The task's stop()", self._task.stop)
        self._chain.close()
        if self._converters is not None:
            _quietly("Closing the converters", self._converters.close)
        if self._tolerance is not None:
            self._tolerance.close()
        if self._consumer is not None:
            _quietly("Leaving the consumer group", self._consumer.close, self._shutdown_seconds)


def _quietly(what: str, call: Callable[..., object], *arguments: object) -> None:
    try:
        call(*arguments)
    except Exception:  # the rest of the closing has to be done all the same
        log.exception("%s failed", what)


def _uninterrupted(what: str, call: Callable[..., object], *arguments: object) -> None:
    """Call a method of the task that may report records: a full dead letter queue interrupts it, and closing goes on."""
    try:
        _quietly(what, call, *arguments)
    except (Interrupted, Abandoned):
        log.warning("%s was interrupted while it reported a record", what)


def _names(partitions: frozenset[TopicPartition]) -> str:
    return ", ".join(f"{topic}-{partition}" for topic, partition in sorted(partitions))
