"""Runs a source task: poll, transform, convert, produce, and commit offsets once Kafka has everything before them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from sluiceway import discovery
from sluiceway.api import SourceRecord, SourceTask
from sluiceway.config.connector import CONNECTOR_CLASS
from sluiceway.errors import ConfigError, FencedError, RetriableError, trace_of
from sluiceway.runtime.errors.error_handling import interruptible_wait, retry_with_tolerance_operator
from sluiceway.runtime.errors.retry_with_tolerance import RetryWithToleranceOperator
from sluiceway.runtime.garbage import raise_gc_threshold
from sluiceway.runtime.interrupts import Abandoned, Interrupted, check_abandoned
from sluiceway.runtime.source.delivery import Delivery, ExactlyOnceDelivery, TransactionLostError
from sluiceway.runtime.source.delivery_setup import source_delivery
from sluiceway.runtime.source.offset_storage import OffsetStorageReaderImpl
from sluiceway.runtime.source.record_sender import RecordSender, describe_source_record
from sluiceway.runtime.source.source_task_context import WorkerSourceTaskContext
from sluiceway.runtime.source.submitted_records import SubmittedRecords
from sluiceway.runtime.source.transaction_boundary import CommitAction
from sluiceway.runtime.task import TaskCommand, TaskResult, TaskServices, TaskSpec
from sluiceway.runtime.task_converters import Converters, task_converters
from sluiceway.runtime.transforms.batch_transform import transform_batch
from sluiceway.runtime.transforms.transformation_chain import TransformationChain, chain_of
from sluiceway.storage.model import State

log = logging.getLogger(__name__)

_PAUSE_SECONDS = 1.0
_IDLE_SECONDS = 0.1  # for a task whose poll does not wait when there is nothing
_BACKOFF_SECONDS = (0.1, 10.0)
_POLLS_AT_THE_END = 2


def run_source(spec: TaskSpec, services: TaskServices) -> TaskResult:
    """Run a source task until it is told to stop, has come to its end (``spec.bounded``) or fails.

    Runs on an executor, in the calling thread. Never raises for a task's failure: it is reported and returned.
    """
    raise_gc_threshold()
    return _SourceLoop(spec, services).run()


class _Polled(NamedTuple):
    """What ``poll`` returned, after ``seconds``; ``failed`` if it is to be called again instead."""

    records: Sequence[SourceRecord] | None
    seconds: float = 0.0
    failed: bool = False


class _SourceLoop:
    def __init__(self, spec: TaskSpec, services: TaskServices) -> None:
        self._spec = spec
        self._services = services
        self._control = services.control
        self._reporter = services.reporter
        self._store = services.offsets
        self._result = TaskResult(spec.id)
        self._backoff = _BACKOFF_SECONDS[0]
        self._running = False
        self._task: SourceTask | None = None
        self._sender: RecordSender | None = None
        self._delivery: Delivery | None = None
        self._chain: TransformationChain[SourceRecord] = TransformationChain()
        self._converters: Converters | None = None
        self._tolerance: RetryWithToleranceOperator | None = None

    def run(self) -> TaskResult:
        try:
            delivery = self._start()
            with suppress(Interrupted):  # told to stop while something was waited for
                self._move(delivery)
            self._committed(delivery.finish())
            self._stop_task()
        except Abandoned:
            self._abandon()
        except TransactionLostError as error:
            self._lose(error)
        except Exception as error:  # noqa: BLE001 (the task's outermost boundary)
            if isinstance(error, FencedError) and isinstance(self._delivery, ExactlyOnceDelivery):
                self._lose(error)
            else:
                self._fail(error)
        return self._result

    def _start(self) -> Delivery:
        config = self._spec.config
        if self._store is None:
            raise ConfigError("A source task needs an offset store.")
        self._chain = chain_of(config)
        self._converters = converters = task_converters(config, self._spec.worker)
        self._tolerance = tolerance = retry_with_tolerance_operator(self._spec, interruptible_wait(self._control))
        task_class = discovery.connector_class(config[CONNECTOR_CLASS]).task_class
        if not issubclass(task_class, SourceTask):
            raise ConfigError(CONNECTOR_CLASS, config[CONNECTOR_CLASS], "is not a source connector")
        task = task_class()
        made = source_delivery(self._spec, self._services, self._store, task, converters, tolerance)
        self._delivery, self._sender = made.delivery, made.sender
        made.delivery.start()  # before the offsets are read, so that no earlier task can move them afterwards
        stored = OffsetStorageReaderImpl(self._store, self._spec.id.connector)
        task.initialize(WorkerSourceTaskContext(config, stored, made.context))
        self._task = task
        task.start(config)
        return made.delivery

    def _move(self, delivery: Delivery) -> None:
        """Move records until the order is STOP, or the end is reached. Raises Interrupted if STOP comes during a wait."""
        assert self._task is not None and self._sender is not None and self._tolerance is not None  # noqa: S101, PT018 (start made them)
        empty = 0
        while self._obey(delivery) and not (self._spec.bounded and empty >= _POLLS_AT_THE_END):
            polled = self._poll(self._task)
            if polled.records:
                empty = 0
                self._send_batch(delivery, polled.records)
                self._result.records += len(polled.records)
                self._tolerance.serve()
            else:
                self._sender.serve()
                empty += not polled.failed
            action = CommitAction.CONTINUE if polled.records is None else delivery.after_batch(polled.seconds)
            if action is CommitAction.CONTINUE and not polled.records:
                action = delivery.when_idle()
            self._settle(delivery, action)

    def _send_batch(self, delivery: Delivery, records: Sequence[SourceRecord]) -> None:
        for part, action in delivery.split(records):
            self._send(delivery, part)
            self._settle(delivery, action)

    def _send(self, delivery: Delivery, records: Sequence[SourceRecord]) -> None:
        """Transform and produce records. One that fails ends it: those before it are safe where the delivery lets them be."""
        assert self._tolerance is not None  # noqa: S101 (start made it)
        made = transform_batch(
            self._chain, records, self._tolerance, place=describe_source_record, original=lambda record: record
        )
        taken = records if made.failure is None else records[: made.taken]
        batch = SubmittedRecords(made.records, taken, made.origins)
        if made.failure is not None:
            delivery.send_last(batch)
            raise made.failure
        delivery.send(batch)

    def _settle(self, delivery: Delivery, action: CommitAction) -> None:
        self._committed(delivery.settle(action))

    def _obey(self, delivery: Delivery) -> bool:
        """Follow orders: wait here while paused; False to stop."""
        order = self._control.command()
        if order is TaskCommand.PAUSE:
            self._pause(delivery)
            order = self._control.command()
        if order is TaskCommand.ABANDON:
            raise Abandoned
        if order is TaskCommand.RUN and not self._running:
            self._reporter.report(State.RUNNING)
            self._running = True
        return order is not TaskCommand.STOP

    def _poll(self, task: SourceTask) -> _Polled:
        """Ask the task for records; wait where it asks for patience, and where it would be asked again and again."""
        started = time.monotonic()
        try:
            records = task.poll()
        except RetriableError as error:
            log.warning("poll failed and is tried again in %.1f s: %s", self._backoff, error)
            self._control.wait(self._backoff)
            self._backoff = min(self._backoff * 2, _BACKOFF_SECONDS[1])
            return _Polled(None, failed=True)
        self._backoff = _BACKOFF_SECONDS[0]
        seconds = time.monotonic() - started
        if not records and seconds < _IDLE_SECONDS / 2:
            self._control.wait(_IDLE_SECONDS)
        return _Polled(records, seconds)

    def _pause(self, delivery: Delivery) -> None:
        """Commit, and wait for another order; the task stays started."""
        self._settle(delivery, delivery.at_rest())
        self._reporter.report(State.PAUSED)
        self._running = False
        while self._control.command() is TaskCommand.PAUSE:
            self._control.wait(_PAUSE_SECONDS)
            self._settle(delivery, delivery.when_idle())

    def _committed(self, done: bool) -> None:
        """Tell the task of a commit, if there was one."""
        if not done or self._task is None:
            return
        try:
            self._task.commit()
        except Exception:  # a task's own housekeeping must not undo a commit
            log.exception("The task's commit() failed")

    def _lose(self, error: Exception) -> None:
        """End without a word: another task may have reported by now, and whoever runs this one knows what to make of it."""
        log.warning("Ending, and writing nothing more: %s", error)
        self._result.lost, self._result.trace = True, trace_of(error)
        if self._sender is not None:
            self._sender.discard()
        self._stop_task()

    def _abandon(self) -> None:
        log.warning("Abandoned: stopping without a commit")
        if self._sender is not None:
            self._sender.discard()
        self._stop_task()

    def _fail(self, error: Exception) -> None:
        log.error("Task threw an uncaught and unrecoverable exception", exc_info=error)
        self._result.failed, self._result.trace = True, trace_of(error)
        try:
            _quietly("Reading the task's orders", lambda: check_abandoned(self._control))
            if self._delivery is not None:
                self._committed(self._delivery.give_up(error))
        except Abandoned:  # the task's status is a newer driver's by now
            self._abandon()
            return
        except Exception:  # the first failure is the one to report
            log.exception("The last commit of offsets failed")
        self._stop_task()
        self._reporter.report(State.FAILED, self._result.trace)

    def _stop_task(self) -> None:
        """Stop the task and close what it ran with, each whatever happens to the others."""
        if self._task is not None:
            _quietly("The task's stop()", self._task.stop)
        if self._converters is not None:
            _quietly("Closing the converters", self._converters.close)
        self._chain.close()
        if self._tolerance is not None:
            self._tolerance.close()


def _quietly(what: str, call: Callable[[], object]) -> None:
    try:
        call()
    except Exception:  # it is over anyway
        log.exception("%s failed", what)
