"""What becomes of a record that cannot be transformed, converted or written (``errors.*``): retry, log, dead letter, failure."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TypeVar

from sluiceway.config.sink_keys import DLQ_TOPIC
from sluiceway.errors import ConfigError, ConnectError
from sluiceway.runtime.errors.dead_letter_queue import DeadLetterQueue
from sluiceway.runtime.errors.dead_letter_record import dead_letter_record
from sluiceway.runtime.errors.error_settings import ErrorSettings
from sluiceway.runtime.errors.processing_context import ProcessingContext, log_text
from sluiceway.runtime.errors.retries import Retries, Wait
from sluiceway.storage.model import TaskId

log = logging.getLogger(__name__)

_LOGGED_ONE_BY_ONE = 10
_LOG_SECONDS = 10.0
_NOBODY = TaskId("", 0)

T = TypeVar("T")


def _nothing() -> None: ...


@dataclass(slots=True)
class ErrorCounts:
    """What has failed so far in one task; the names are Connect's metrics' (``task-error-metrics``)."""

    record_failures: int = 0
    """Failed attempts, retries included."""

    record_errors: int = 0
    """Records that failed for good."""

    records_skipped: int = 0
    retries: int = 0
    errors_logged: int = 0
    deadletterqueue_produce_requests: int = 0
    deadletterqueue_produce_failures: int = 0
    last_error_timestamp: int = 0
    """Milliseconds since the epoch; 0 if there was no error."""


class RetryWithToleranceOperator:
    """Fails the task at the first bad record, or, with ``errors.tolerance=all``, leaves bad records out and counts them.

    For one task; on an executor. ``wait`` is how the task waits between attempts, ``letters`` where dead letters go.
    What is left out is logged or a dead letter before an offset after it may be committed: ask ``settle``.
    """

    def __init__(
        self,
        config: Mapping[str, str],
        *,
        task: TaskId = _NOBODY,
        wait: Wait = time.sleep,
        dead_letter_queue: DeadLetterQueue | None = None,
    ) -> None:
        """Raises ConfigError for settings that cannot be used, such as a dead letter topic without ``letters``."""
        self.settings = settings = ErrorSettings.of(config)
        if settings.dead_letter_topic and dead_letter_queue is None:
            raise ConfigError(DLQ_TOPIC, settings.dead_letter_topic, "this task cannot write dead letters; remove it")
        self.counts = ErrorCounts()
        self._task = task
        self._dead_letter_queue = dead_letter_queue
        self._retries = Retries(
            settings.retry_seconds, settings.retry_delay_seconds, wait, retried=self._count_retry, failed=self._count_failure
        )
        self._next_log = 0.0

    @property
    def skipped(self) -> int:
        """How many records were left out."""
        return self.counts.records_skipped

    def recover(self, operation: Callable[[], T], what: str, error: Exception, failure: ProcessingContext) -> T | None:
        """Try an operation that has failed with ``error`` again while that is retriable, then ``refuse`` the record.

        Returns the operation's result, or None if the record is to be left out. What ``wait`` raises passes through.
        """
        self._count_failure()
        try:
            return self._retries.again(operation, what, error)
        except Exception as last:  # noqa: BLE001 (a converter or transform may raise anything)
            self._give_up(what, last, failure)
            return None

    def refuse(self, what: str, error: Exception, failure: ProcessingContext | None = None) -> None:
        """Take note of a bad record; ``what`` says which and what failed. Raises ConnectError unless it may be left out."""
        self._count_failure()
        self._give_up(what, error, failure)

    def report(self, what: str, error: Exception, failure: ProcessingContext) -> Future[None]:
        """Take note of a bad record as ``refuse`` does; the future is done once its dead letter, if any, is in Kafka."""
        self._count_failure()
        return self._give_up(what, error, failure)

    def serve(self) -> None:
        """Take note of what became of dead letters. Raises ConnectError if one was lost."""
        if self._dead_letter_queue is not None:
            self._dead_letter_queue.serve()

    def settle(self, seconds: float, check: Callable[[], None] = _nothing) -> bool:
        """Wait until all dead letters are in Kafka; False if that takes longer than ``seconds``. To be asked before a commit.

        ``check`` is called now and then and raises to give up. Raises ConnectError if a dead letter was lost: then no
        offset may be committed any more.
        """
        return self._dead_letter_queue is None or self._dead_letter_queue.flush(seconds, check)

    def close(self) -> None:
        """Say how many records were left out, and close what dead letters are written with. Never raises."""
        if self.skipped:
            log.warning("%s left out %d records in all: %s", self._task, self.skipped, self.counts)
        if self._dead_letter_queue is not None:
            self._dead_letter_queue.close()

    def _give_up(self, what: str, error: Exception, failure: ProcessingContext | None) -> Future[None]:
        counts = self.counts
        counts.record_errors += 1
        counts.last_error_timestamp = time.time_ns() // 1_000_000
        letter = self._report(error, failure)
        if not self.settings.tolerant:
            raise ConnectError(f"Tolerance exceeded in error handler: {what}: {error}") from error
        counts.records_skipped += 1
        if not self.settings.log:
            self._log_sparingly(what, error)
        return letter

    def _report(self, error: Exception, failure: ProcessingContext | None) -> Future[None]:
        """Write to the log and to the dead letter topic what the settings ask for, also when the task then fails."""
        if failure is not None and self.settings.log:
            log.error(log_text(failure, self._task, include_record=self.settings.log_messages), exc_info=error)
            self.counts.errors_logged += 1
        if failure is None or self._dead_letter_queue is None:
            return _done()
        self.counts.deadletterqueue_produce_requests += 1
        letter = dead_letter_record(failure, error, self._task, context_headers=self.settings.dead_letter_headers)
        sent = self._dead_letter_queue.send(letter)
        sent.add_done_callback(self._count_letter)
        return sent

    def _log_sparingly(self, what: str, error: Exception) -> None:
        """A line for each of the first few, then one every ten seconds: nothing goes unsaid, and the log is not flooded."""
        now = time.monotonic()
        if self.skipped > _LOGGED_ONE_BY_ONE and now < self._next_log:
            return
        self._next_log = now + _LOG_SECONDS
        log.error("Skipped a record (%d skipped so far): %s: %s", self.skipped, what, error)

    def _count_letter(self, sent: Future[None]) -> None:
        if sent.exception() is not None:
            self.counts.deadletterqueue_produce_failures += 1

    def _count_failure(self) -> None:
        self.counts.record_failures += 1

    def _count_retry(self) -> None:
        self.counts.retries += 1


def _done() -> Future[None]:
    done: Future[None] = Future()
    done.set_result(None)
    return done
