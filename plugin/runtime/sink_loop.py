"""Runs a sink task: consume, convert, transform, put, and commit the offsets that the task says are safe."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping

from sluiceway import discovery
from sluiceway.api import SinkRecord, SinkTask, TopicPartition
from sluiceway.config.connector import CONNECTOR_CLASS, overrides
from sluiceway.errors import ConfigError, FencedError, RetriableError, trace_of
from sluiceway.kafka.clients import consumer_config
from sluiceway.runtime.chain import Chain, chain_of
from sluiceway.runtime.consuming import TaskConsumer
from sluiceway.runtime.contexts import SinkContext
from sluiceway.runtime.converters import task_converters
from sluiceway.runtime.garbage import collect_seldom
from sluiceway.runtime.interrupts import Abandoned
from sluiceway.runtime.sink_commits import SinkCommits
from sluiceway.runtime.sink_records import Batch, RecordReader
from sluiceway.runtime.subscription import Subscription
from sluiceway.runtime.task import Order, TaskResult, TaskServices, TaskSpec
from sluiceway.runtime.tolerance import Tolerance
from sluiceway.storage.model import State

log = logging.getLogger(__name__)

_BATCH_SIZE = 500  # Java's max.poll.records; larger ones are no faster
_POLL_SECONDS = 0.2
_BACKOFF_SECONDS = (0.1, 10.0)


def run_sink(spec: TaskSpec, services: TaskServices) -> TaskResult:
    """Run a sink task until it is told to stop, has come to the ends seen at its start (``spec.bounded``) or fails.

    Runs on an executor, in the calling thread. Never raises for a task's failure: it is reported and returned.
    """
    collect_seldom()
    return _SinkLoop(spec, services).run()


class _SinkLoop:
    def __init__(self, spec: TaskSpec, services: TaskServices) -> None:
        self._spec = spec
        self._control = services.control
        self._reporter = services.reporter
        self._result = TaskResult(spec.id)
        self._targets: dict[TopicPartition, int] = {}
        self._gone: frozenset[TopicPartition] = frozenset()
        self._running = False
        self._task: SinkTask | None = None
        self._consumer: TaskConsumer | None = None
        self._chain: Chain[SinkRecord] = Chain()

    def run(self) -> TaskResult:
        try:
            self._start()
            self._move()
            self._close(commit=True)
        except Abandoned:
            log.warning("Abandoned: stopping without a commit")
            self._close(commit=False)
        except Exception as error:
            log.error("Task threw an uncaught and unrecoverable exception", exc_info=error)
            self._result.failed, self._result.trace = True, trace_of(error)
            self._close(commit=not isinstance(error, FencedError))
            self._reporter.report(State.FAILED, self._result.trace)
        return self._result

    def _start(self) -> None:
        spec, config = self._spec, self._spec.config
        self._chain = chain_of(config, in_place=True)
        self._tolerance = Tolerance(config)
        self._reader = RecordReader(task_converters(config, spec.worker), self._tolerance, self._reporter.topic)
        self._subscription = Subscription(config)
        task_class = discovery.connector_class(config[CONNECTOR_CLASS]).task_class
        if not issubclass(task_class, SinkTask):
            raise ConfigError(CONNECTOR_CLASS, config[CONNECTOR_CLASS], "is not a sink connector")
        own = overrides(config, "consumer")
        batch_size = int(own.get("max.poll.records") or spec.worker.raw.get("consumer.max.poll.records") or _BATCH_SIZE)
        # Java's consumer creates a missing topic, too; a partition's end is only told where it ends the task.
        defaults = {"allow.auto.create.topics": "true", "enable.partition.eof": str(spec.bounded).lower()}
        settings = consumer_config(
            spec.worker, f"connector-consumer-{spec.id}", f"connect-{spec.id.connector}", {**defaults, **own}
        )
        self._consumer = consumer = TaskConsumer(settings, self, batch_size)
        task = task_class()
        self._context = SinkContext(config, consumer)
        self._commits = SinkCommits(task, consumer, self._context, spec.worker.number("offset.flush.interval.ms") / 1000)
        task.initialize(self._context)
        self._task = task
        task.start(config)
        topics = self._subscription.start(consumer)
        if spec.bounded:
            self._targets = consumer.end_offsets(topics)
        self._subscription.subscribe(consumer)

    def _move(self) -> None:
        """Move records until the order is STOP, or the end is reached."""
        assert self._consumer is not None and self._task is not None  # noqa: S101, PT018 (start made them)
        consumer, read, commits = self._consumer, self._reader.read, self._commits
        while self._obey() and not (self._spec.bounded and self._at_targets()):
            batch = read(consumer.poll(self._context.take_timeout(_POLL_SECONDS)))
            batch.transform(self._chain, self._tolerance)
            if self._put(self._task, batch):
                commits.took(batch)
                self._result.records += len(batch.records)
                self._rewind(self._context.take_rewinds())
                if batch.failure is not None:
                    raise batch.failure
            commits.commit_if_due()
            self._subscription.refresh_if_due(consumer)

    def _put(self, task: SinkTask, batch: Batch) -> bool:
        """Give a batch to the task until it takes it. False if another order came first: it will be read again."""
        assert self._consumer is not None  # noqa: S101 (start made it)
        default = _BACKOFF_SECONDS[0]
        while True:
            try:
                task.put(batch.records)
                return True
            except RetriableError as error:
                seconds = self._context.take_timeout(default)
                log.warning("put of %d records failed and is tried again in %.1f s: %s", len(batch.records), seconds, error)
            default = min(default * 2, _BACKOFF_SECONDS[1])
            if not self._back_off(batch, seconds):
                self._consumer.seek(batch.starts)
                return False

    def _back_off(self, batch: Batch, seconds: float) -> bool:
        """Wait with everything paused, in the group still; False if there is another order."""
        assert self._consumer is not None  # noqa: S101 (start made it)
        self._gone = frozenset()
        self._consumer.pause()
        try:
            until = time.monotonic() + seconds
            while (left := until - time.monotonic()) > 0:
                if self._control.order() is not Order.RUN:
                    return False
                self._consumer.idle(min(left, _POLL_SECONDS))
        finally:
            self._consumer.resume()
        if self._gone:
            batch.drop(self._gone)
        return True

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
        order = self._control.order()
        if order is Order.PAUSE:
            self._pause()
            order = self._control.order()
        if order is Order.ABANDON:
            raise Abandoned
        if order is Order.RUN and not self._running:
            self._reporter.report(State.RUNNING)
            self._running = True
        return order is not Order.STOP

    def _pause(self) -> None:
        """Commit, and wait for another order; the group membership is kept."""
        assert self._consumer is not None  # noqa: S101 (start made it)
        self._commits.commit_finally()
        self._consumer.pause()
        self._reporter.report(State.PAUSED)
        self._running = False
        while self._control.order() is Order.PAUSE:
            self._consumer.idle(_POLL_SECONDS)
        self._consumer.resume()

    def assigned(self, partitions: frozenset[TopicPartition]) -> Mapping[TopicPartition, int]:
        """See ``Rebalances``."""
        if self._task is None or not partitions:
            return {}
        log.info("Assigned %s", _names(partitions))
        self._task.open(partitions)
        rewinds = self._context.take_rewinds()
        self._commits.rewound({partition: offset for partition, offset in rewinds.items() if partition in partitions})
        return rewinds

    def revoked(self, partitions: frozenset[TopicPartition]) -> None:
        """See ``Rebalances``."""
        if partitions:
            self._commits.commit_finally(partitions)
            self.lost(partitions)

    def lost(self, partitions: frozenset[TopicPartition]) -> None:
        """See ``Rebalances``."""
        if self._task is None or not partitions:
            return
        log.info("Giving up %s", _names(partitions))
        self._gone |= partitions
        self._commits.forget(partitions)
        self._task.close(partitions)

    def _close(self, *, commit: bool) -> None:
        """Commit, close partitions, stop the task, leave the group; each whatever happened before."""
        if self._task is not None and self._consumer is not None:
            open_partitions = self._consumer.assignment
            if commit:
                _quietly("The last commit", self._commits.commit_finally)
            if open_partitions:
                _quietly("The task's close()", self._task.close, open_partitions)
            _quietly("The task's stop()", self._task.stop)
        self._chain.close()
        if self._consumer is not None:
            _quietly("Leaving the consumer group", self._consumer.close)


def _quietly(what: str, call: Callable[..., object], *arguments: object) -> None:
    try:
        call(*arguments)
    except Exception:  # the rest of the closing has to be done all the same
        log.exception("%s failed", what)


def _names(partitions: frozenset[TopicPartition]) -> str:
    return ", ".join(f"{topic}-{partition}" for topic, partition in sorted(partitions))
