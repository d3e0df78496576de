"""Runs a source task: poll, transform, convert, produce, and commit offsets once Kafka has all records before them."""

from __future__ import annotations

import functools
import logging
import math
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from typing import NamedTuple

from sluiceway.api import EncodedRecords, NotColumnar, Offset, Partition, RowRecords, SourceColumns, SourceRecord
from sluiceway.backoff import Backoff
from sluiceway.errors import FencedError, RetriableError, trace_of
from sluiceway.java_plugins.packed import PackedPart
from sluiceway.java_plugins.source_task import JavaSourceTask
from sluiceway.runtime.columns import FEW_RECORDS, FEWEST_RECORDS
from sluiceway.runtime.interrupts import Abandoned, Interrupted
from sluiceway.runtime.source.exactly_once_delivery import ExactlyOnceDelivery, TransactionLostError
from sluiceway.runtime.source.failed_sends import describe_source_record
from sluiceway.runtime.source.packed_batches import PackedBatches
from sluiceway.runtime.source.source_task_builder import SourceTaskParts, build_source_task
from sluiceway.runtime.source.submitted_records import SubmittedEncoded, SubmittedRecords
from sluiceway.runtime.source.transaction_boundary import CommitAction
from sluiceway.runtime.task import TaskCommand, TaskResult, TaskServices, TaskSpec
from sluiceway.runtime.transforms.batch_transform import transform_batch
from sluiceway.runtime.worker_task import BACKOFF_SECONDS, WorkerTask, log_errors, run_task
from sluiceway.storage.model import State
from sluiceway.telemetry.task_spans import PRODUCE, TRANSFORM

log = logging.getLogger(__name__)

_PAUSE_SECONDS = 1.0
_IDLE_SECONDS = 0.1  # after a poll that returned no records without waiting
_EMPTY_POLLS_AT_THE_END = 2


def run_source(spec: TaskSpec, services: TaskServices) -> TaskResult:
    """Run a source task until it must stop, has no more records (``spec.bounded``) or fails.

    Runs on an executor, in the calling thread. A failure of the task is reported and returned, not raised.
    """
    return run_task(_create, spec, services)


def _create(spec: TaskSpec, services: TaskServices, resources: ExitStack) -> WorkerSourceTask:
    return WorkerSourceTask(spec, services, resources, build_source_task(spec, services, resources))


_Polled = Sequence[SourceRecord] | SourceColumns | EncodedRecords | PackedPart


class _Poll(NamedTuple):
    """The records of one ``poll``, which took ``seconds``. ``retry`` if it raised RetriableError."""

    records: _Polled | None
    seconds: float = 0.0
    retry: bool = False


class WorkerSourceTask(WorkerTask):
    """A source task and what it runs with."""

    def __init__(self, spec: TaskSpec, services: TaskServices, resources: ExitStack, parts: SourceTaskParts) -> None:
        super().__init__(spec, services, resources)
        self._task = parts.task
        self._context = parts.context
        self._chain = parts.chain
        self._encode_columns = parts.encode_columns
        self._forms = parts.forms
        self._tolerance = parts.tolerance
        self._sender = parts.sender
        self._delivery = parts.delivery
        self._offsets = parts.offsets
        self._bound = parts.bound
        self._let_others_start = services.let_others_start
        self._sent_before = 0
        self._packed: PackedBatches | None = None
        self._java: JavaSourceTask | None = None
        if isinstance(parts.task, JavaSourceTask):
            self._java = parts.task
            self._java.while_polling = self._while_polling
            self._packed = PackedBatches(parts.task, parts.tolerance, parts.delivery, parts.offsets, self._apply)
        self._backoff = Backoff(*BACKOFF_SECONDS)
        self._partly_sent = False
        self._started = False
        self._empty = 0  # polls in a row that returned no records
        self._ended = False  # a bounded task has reached its end

    def run(self) -> TaskResult:
        try:
            self._start()
            with suppress(Interrupted):  # the task must stop while it waits
                self._move_records()
            self._drain()
            self._commit_last(self._delivery.finish)
            if self._ended:
                self._refuse_wait()
            self._close()
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

    def _start(self) -> None:
        if isinstance(self._delivery, ExactlyOnceDelivery):
            # The offsets can be read when no killed task's transaction is open. Each such task ends its own as it starts again.
            self._let_others_start()
        with self._spans.life("start"):
            self._delivery.start()  # before the task reads its offsets, so that no earlier instance can change them later
            self._task.initialize(self._context)
            self._started = True
            self._task.start(self._spec.config)
        self._metrics.ask_lag_of(self._task.source_lag)

    def _move_records(self) -> None:
        """Move records until the task must stop or reaches its end. Raises Interrupted if it must stop during a wait."""
        while self._obey() and not self._ended:
            if self._delivery.behind and self._control.command() is TaskCommand.RUN:
                self._apply(CommitAction.COMMIT)
            else:
                self._move_batch()

    def _obey(self) -> bool:
        if self._java is not None and self._java.polls_ahead and self._control.command() is not TaskCommand.ABANDON:
            return True  # what is polled already is sent before the task pauses or stops
        return super()._obey()

    def _move_batch(self) -> None:
        """Poll once, send the records, and commit if it is time to."""
        poll, awaited = self._poll(), False
        if poll.records:
            self._empty = 0
            self._send_polled(poll.records, poll.seconds)
        else:
            self._sender.poll_deliveries()
            self._empty = 0 if self._bound is not None and self._bound.is_behind else self._empty + (not poll.retry)
            for partition, offset in () if poll.retry else self._idle_offsets():
                self._offsets.add(partition, offset)
            awaited = self._task.commit_is_awaited
        action = CommitAction.CONTINUE if poll.records is None else self._delivery.after_batch(poll.seconds)
        if action is CommitAction.CONTINUE and not poll.records:
            action = self._delivery.when_idle(awaited=awaited)
        self._apply(action, awaited=awaited)
        if poll.retry:
            self._metrics.blocked()
        else:
            self._metrics.caught_up()
        self._ended = self._spec.bounded and self._at_end()

    def _idle_offsets(self) -> Sequence[tuple[Partition, Offset | None]]:
        moved = self._task.idle_offsets()
        return moved if self._bound is None else self._bound.of_open_partitions(moved)

    def _drain(self) -> None:
        """Send what the task has received and its source cannot send again, within the time to stop."""
        if self._partly_sent:
            return
        started = time.monotonic()
        records = self._of_this_run(self._task.drain())
        if records:
            with suppress(Interrupted):
                self._send_polled(records, time.monotonic() - started)

    def _send_polled(self, records: _Polled, seconds: float) -> None:
        self._metrics.called(seconds)
        self._metrics.took(len(records), *_timestamps(records))
        self._partly_sent = True
        with self._spans.batch(seconds, len(records)):
            self._send_batch(records)
        self._partly_sent = False
        self._result.records += len(records)
        self._tolerance.poll_deliveries()

    def _at_end(self) -> bool:
        """Return whether the source of a bounded task has no more records now, or of the run's interval."""
        if self._bound is not None and self._bound.reached:
            return True
        ended = self._task.ended
        return self._empty >= _EMPTY_POLLS_AT_THE_END if ended is None else ended

    def _send_batch(self, records: _Polled) -> None:
        if isinstance(records, PackedPart):
            with self._spans.step(PRODUCE, len(records)):
                self._packed.send(records)  # type: ignore[union-attr]  # only Java tasks return these
            return
        if isinstance(records, EncodedRecords):
            self._forms.columnar()
            with self._spans.step(PRODUCE, len(records)):
                self._delivery.send(SubmittedEncoded(records))
            return
        if isinstance(records, SourceColumns):
            try:
                with self._spans.step(TRANSFORM, len(records)):
                    encoded = self._encode_columns(records)  # type: ignore[misc]  # not None: poll_columns() was called
            except NotColumnar as error:
                self._forms.failed()
                self._forms.rows(error.refusal, records.batch.topic, records.batch)
                records = records.records()
            else:
                self._forms.columnar()
                with self._spans.step(PRODUCE, encoded.size):
                    self._delivery.send(encoded)
                return
        elif isinstance(records, RowRecords):
            self._forms.rows(records.refusal, records[0].topic)
        else:
            self._forms.rows(None if len(records) >= FEWEST_RECORDS else FEW_RECORDS)
        for part, action in self._delivery.split(records):
            self._send(part)
            self._apply(action)

    def _send(self, records: Sequence[SourceRecord]) -> None:
        """Transform and produce records. After a failure, the records before it are sent if the delivery allows it."""
        with self._spans.step(TRANSFORM, len(records)):
            batch = transform_batch(
                self._chain, records, self._tolerance, describe=describe_source_record, original=lambda record: record
            )
        sources = records if batch.failure is None else records[: batch.taken]
        submitted = SubmittedRecords(batch.records, sources, batch.origins)
        with self._spans.step(PRODUCE, submitted.size):
            if batch.failure is not None:
                self._delivery.send_before_failure(submitted)
                raise batch.failure
            self._delivery.send(submitted)

    def _apply(self, action: CommitAction, *, awaited: bool = False) -> None:
        if action is CommitAction.CONTINUE:
            return
        pending, committed, started = self._offsets.pending, False, time.monotonic()
        try:
            committed = self._delivery.apply(action)
        finally:
            if pending or committed:
                seconds = time.monotonic() - started
                self._metrics.committed(seconds, succeeded=committed)
                self._spans.committed(seconds, succeeded=committed)
        if committed and isinstance(self._delivery, ExactlyOnceDelivery):
            self._metrics.transaction(self._sender.sent - self._sent_before)
            self._sent_before = self._sender.sent
        self._notify_commit(committed or (awaited and not self._delivery.has_uncommitted))

    def _poll(self) -> _Poll:
        """Poll the task, then wait if it raised RetriableError, or returned no records without waiting itself."""
        short = self._spec.bounded or self._delivery.in_transaction  # an empty poll ends a bounded task, and transactions
        self._context.longest_wait = _IDLE_SECONDS if short else math.inf
        started = time.monotonic()
        try:
            columns = self._encode_columns is not None and self._forms.next()
            polled = self._task.poll_columns() if columns else self._task.poll()
        except RetriableError as error:
            pause = self._backoff.next()
            log.warning("poll() failed; retrying in %.1f s: %s", pause, error)
            self._waits.failed("poll()", error, pause)
            self._control.wait(pause)
            return _Poll(None, retry=True)
        self._backoff.reset()
        self._waits.succeeded("poll()")
        seconds = time.monotonic() - started
        records = self._of_this_run(polled)
        idle = not records and (self._bound is None or not self._bound.held_back)
        if idle and seconds < _IDLE_SECONDS / 2 and not self._sender.await_acknowledgement(_IDLE_SECONDS):
            self._context.wait(_IDLE_SECONDS)
        return _Poll(records, seconds)

    def _of_this_run(self, records: _Polled | None) -> _Polled | None:
        """Return the records that the run may send: all, unless it ends by their timestamps. Those of Java are chosen there."""
        if self._bound is None or self._java is not None or isinstance(records, PackedPart):
            return records
        return self._bound.kept(records)

    def _while_polling(self, seconds: float) -> None:
        """Do for a Java task whose ``poll`` lasts what follows an empty poll. Connect has threads of its own for that."""
        self._sender.poll_deliveries()
        if seconds >= _IDLE_SECONDS and not (self._java and self._java.in_step):
            self._apply(self._delivery.when_idle())

    def _pause(self) -> None:
        self._apply(self._delivery.when_stopping())
        self._reporter.report(State.PAUSED)
        self._running = False
        log_errors("The task's paused()", self._task.paused)
        while self._control.command() is TaskCommand.PAUSE:
            self._control.wait(_PAUSE_SECONDS)
            self._apply(self._delivery.when_idle())
        if self._control.command() is TaskCommand.RUN:
            log_errors("The task's resumed()", self._task.resumed)

    def _notify_commit(self, committed: bool) -> None:
        """Call the task's ``commit`` after a commit. Its failure must not undo the commit, so it is only logged.

        It says that all records polled before are in Kafka, so it is not called once some were held back.
        """
        if committed and self._started and not (self._bound is not None and self._bound.holds):
            log_errors("The task's commit()", self._task.commit)

    def _commit_last(self, commit: Callable[[], bool]) -> None:
        """Commit at the end and call ``commit``, unless a batch failed or was interrupted: its last records are not in Kafka.

        A Java task keeps account of each record, and Connect calls it then, too.
        """
        pending, started = self._offsets.pending, time.monotonic()
        committed = commit()
        while self._ended and self._delivery.behind and self._obey():  # a bounded run is over once Kafka has its records
            committed = commit()
        if pending or committed:
            self._spans.committed(time.monotonic() - started, succeeded=committed)
        self._notify_commit(committed and (self._packed is not None or not self._partly_sent))

    def _lose(self, error: Exception) -> None:
        """End without reporting a status: another instance of the task may already have reported its own."""
        log.warning("Stopping without writing anything more: %s", error)
        self._result.lost, self._result.trace = True, trace_of(error)
        self._close_abandoned()

    def _close_abandoned(self) -> None:
        self._sender.discard()
        self._close()

    def _close_failed(self, error: Exception) -> None:
        try:
            self._commit_last(functools.partial(self._delivery.fail, error))
        except Exception:  # the task's first failure is the one to report
            log.exception("The last commit of offsets failed")
        self._close()

    def _close(self) -> None:
        if self._started:
            with self._spans.life("stop"):
                log_errors("The task's stop()", self._task.stop)
        self._resources.close()


def _timestamps(records: _Polled) -> tuple[int | None, int | None]:
    """Return the timestamps of the first and the last record, where they cost nothing to find."""
    if isinstance(records, SourceColumns | EncodedRecords | PackedPart):
        return None, None
    return records[0].timestamp, records[-1].timestamp
