"""Runs a source task: poll, transform, convert, produce, and commit offsets once Kafka has everything before them."""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Sequence

from sluiceway import discovery
from sluiceway.api import SourceRecord, SourceTask
from sluiceway.config.connector import CONNECTOR_CLASS, overrides
from sluiceway.errors import ConfigError, ConnectError, FencedError, RetriableError, trace_of
from sluiceway.kafka.clients import producer_config
from sluiceway.runtime.chain import Chain, StageError, chain_of
from sluiceway.runtime.contexts import SourceContext
from sluiceway.runtime.converters import task_converters
from sluiceway.runtime.garbage import collect_seldom
from sluiceway.runtime.interrupts import Abandoned, Interrupted, check_abandoned, check_interrupted
from sluiceway.runtime.offsets import OffsetWriter, StoredOffsets
from sluiceway.runtime.outgoing import Outgoing
from sluiceway.runtime.producing import Acknowledge, RecordSender, place_of
from sluiceway.runtime.task import Order, TaskResult, TaskServices, TaskSpec
from sluiceway.runtime.tolerance import Tolerance
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
    collect_seldom()
    return _SourceLoop(spec, services).run()


class _SourceLoop:
    def __init__(self, spec: TaskSpec, services: TaskServices) -> None:
        self._spec = spec
        self._control = services.control
        self._reporter = services.reporter
        self._store = services.offsets
        self._result = TaskResult(spec.id)
        self._interval = spec.worker.number("offset.flush.interval.ms") / 1000
        self._timeout = spec.worker.number("offset.flush.timeout.ms") / 1000
        self._next_commit = time.monotonic() + self._interval
        self._backoff = _BACKOFF_SECONDS[0]
        self._running = False
        self._task: SourceTask | None = None
        self._sender: RecordSender | None = None
        self._chain: Chain[SourceRecord] = Chain()

    def run(self) -> TaskResult:
        try:
            self._start()
            self._move()
            self._commit()
            self._stop_task()
        except Abandoned:
            log.warning("Abandoned: stopping without a commit")
            if self._sender is not None:
                self._sender.discard()
            self._stop_task()
        except Exception as error:  # noqa: BLE001 (the task's outermost boundary)
            self._fail(error)
        return self._result

    def _start(self) -> None:
        config = self._spec.config
        if self._store is None:
            raise ConfigError("A source task needs an offset store.")
        self._chain = chain_of(config)
        self._tolerance = tolerance = Tolerance(config)
        converters = task_converters(config, self._spec.worker)
        task_class = discovery.connector_class(config[CONNECTOR_CLASS]).task_class
        if not issubclass(task_class, SourceTask):
            raise ConfigError(CONNECTOR_CLASS, config[CONNECTOR_CLASS], "is not a source connector")
        task = task_class()
        self._offsets = OffsetWriter(self._store, self._spec.id.connector)
        self._sender = RecordSender(
            producer_config(self._spec.worker, f"connector-producer-{self._spec.id}", overrides(config, "producer")),
            converters, self._offsets, tolerance,
            interrupt=functools.partial(check_interrupted, self._control),
            new_topic=self._reporter.topic,
            acknowledge=_acknowledge(task),
        )  # fmt: skip
        task.initialize(SourceContext(config, StoredOffsets(self._store, self._spec.id.connector)))
        self._task = task
        task.start(config)

    def _move(self) -> None:
        """Move records until the order is STOP, or the end is reached."""
        assert self._task is not None and self._sender is not None  # noqa: S101, PT018 (start made them)
        empty = 0
        while self._obey() and not (self._spec.bounded and empty >= _POLLS_AT_THE_END):
            records = self._poll(self._task)
            if records:
                empty = 0
                try:
                    self._send(self._sender, records)
                except Interrupted:  # told to stop while the producer's buffer was full
                    return
                self._result.records += len(records)
            else:
                self._sender.serve()
                empty += records is not None
            if time.monotonic() >= self._next_commit:
                self._commit()

    def _send(self, sender: RecordSender, records: Sequence[SourceRecord]) -> None:
        """Transform and produce a batch. A record that fails ends it: those before it are sent, and their offsets safe."""
        made = self._chain(records, self._refuse)
        taken = records if made.failure is None else records[: made.taken]
        sender.send(Outgoing(made.records, taken, made.origins))
        if made.failure is not None:
            raise made.failure

    def _refuse(self, record: SourceRecord, error: StageError) -> None:
        cause = error.__cause__ if isinstance(error.__cause__, Exception) else error
        self._tolerance.refuse(f"{place_of(record)} cannot be transformed by {error.alias}", cause)

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

    def _poll(self, task: SourceTask) -> Sequence[SourceRecord] | None:
        """Return the task's next records, an empty list where there are none, None where the task asked for patience."""
        started = time.monotonic()
        try:
            records = task.poll()
        except RetriableError as error:
            log.warning("poll failed and is tried again in %.1f s: %s", self._backoff, error)
            self._control.wait(self._backoff)
            self._backoff = min(self._backoff * 2, _BACKOFF_SECONDS[1])
            return None
        self._backoff = _BACKOFF_SECONDS[0]
        if not records and time.monotonic() - started < _IDLE_SECONDS / 2:
            self._control.wait(_IDLE_SECONDS)
        return records or ()

    def _pause(self) -> None:
        """Commit, and wait for another order; the task stays started."""
        self._commit()
        self._reporter.report(State.PAUSED)
        self._running = False
        while self._control.order() is Order.PAUSE:
            self._control.wait(_PAUSE_SECONDS)
            if self._offsets.pending and time.monotonic() >= self._next_commit:
                self._commit()

    def _commit(self) -> None:
        """Store the newest offsets once every record before them is acknowledged. What fails is tried at the next interval."""
        assert self._task is not None and self._sender is not None  # noqa: S101, PT018 (start made them)
        self._next_commit = time.monotonic() + self._interval
        if not self._offsets.pending:
            return
        if not self._sender.flush(self._timeout, functools.partial(check_abandoned, self._control)):
            log.error("Not committing offsets: Kafka has not acknowledged all records within offset.flush.timeout.ms (%g s)",
                      self._timeout)  # fmt: skip
            return
        try:
            self._offsets.write()
        except FencedError:
            raise
        except ConnectError as error:
            log.error("Offsets were not stored and will be tried again with the next commit: %s", error)
            return
        try:
            self._task.commit()
        except Exception:  # a task's own housekeeping must not undo a commit
            log.exception("The task's commit() failed")

    def _fail(self, error: Exception) -> None:
        log.error("Task threw an uncaught and unrecoverable exception", exc_info=error)
        self._result.failed, self._result.trace = True, trace_of(error)
        try:
            if self._sender is not None and not self._sender.failed and not isinstance(error, FencedError):
                self._commit()  # what was sent before the failure is safe
        except Exception:  # the first failure is the one to report
            log.exception("The last commit of offsets failed")
        except Abandoned:
            pass
        self._stop_task()
        self._reporter.report(State.FAILED, self._result.trace)

    def _stop_task(self) -> None:
        self._chain.close()
        if self._task is None:
            return
        try:
            self._task.stop()
        except Exception:  # it is over anyway
            log.exception("The task's stop() failed")


def _acknowledge(task: SourceTask) -> Acknowledge | None:
    """Return the task's ``commit_record`` if it has one of its own."""
    return None if type(task).commit_record is SourceTask.commit_record else task.commit_record
