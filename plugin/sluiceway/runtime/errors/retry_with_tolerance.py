"""Handles records that cannot be transformed, converted or written, by the connector's ``errors.*`` keys."""

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
from sluiceway.runtime.errors.processing_context import ProcessingContext, error_log_message
from sluiceway.runtime.errors.retries import Retries, Wait
from sluiceway.runtime.waits import Waits
from sluiceway.storage.model import TaskId

log = logging.getLogger(__name__)

_LOGGED_ONE_BY_ONE = 10
_LOG_SECONDS = 10.0
_UNNAMED = TaskId("", 0)

T = TypeVar("T")


def _never_interrupted() -> None: ...


@dataclass(slots=True)
class ErrorCounts:
    """Counts one task's failures, under the names of Connect's ``task-error-metrics``."""

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
    """Fails the task at the first bad record or, with ``errors.tolerance=all``, skips bad records and counts them.

    Belongs to one task, on an executor. ``wait`` waits between attempts. Call ``flush`` before each offset commit, so that
    no offset is committed before the dead letter queue records of skipped records are in Kafka.
    """

    def __init__(
        self,
        config: Mapping[str, str],
        *,
        task: TaskId = _UNNAMED,
        wait: Wait = time.sleep,
        dead_letter_queue: DeadLetterQueue | None = None,
        waits: Waits | None = None,
    ) -> None:
        """Raise ConfigError for invalid settings, such as a dead letter queue topic without ``dead_letter_queue``."""
        self.settings = settings = ErrorSettings.of(config)
        if settings.dead_letter_topic and dead_letter_queue is None:
            raise ConfigError(
                DLQ_TOPIC, settings.dead_letter_topic, "this task cannot write dead letter queue records; remove the key"
            )
        self.counts = ErrorCounts()
        self._task = task
        self._dead_letter_queue = dead_letter_queue
        self._retries = Retries(
            settings.retry_seconds,
            settings.retry_delay_seconds,
            wait,
            on_retry=self._count_retry,
            on_failure=self._count_failure,
            waits=waits,
        )
        self._next_log = 0.0

    @property
    def skipped(self) -> int:
        """The number of records skipped so far."""
        return self.counts.records_skipped

    def retry(self, operation: Callable[[], T], description: str, error: Exception, context: ProcessingContext) -> T | None:
        """Retry an operation whose first attempt failed with ``error``, while its errors are retriable.

        Return its result, or None if the record must be skipped. Raises ConnectError if errors are not tolerated, and what
        ``wait`` raises. ``description`` says which record failed and how.
        """
        self._count_failure()
        try:
            return self._retries.retry(operation, description, error)
        except Exception as last:  # noqa: BLE001 (a converter or transform may raise anything)
            self._fail(description, last, context)
            return None

    def execute_failed(self, description: str, error: Exception, context: ProcessingContext) -> Future[None]:
        """Report a bad record that is not retried. Raises ConnectError unless errors are tolerated.

        The future is done once the record's dead letter queue record, if it has one, is in Kafka.
        """
        self._count_failure()
        return self._fail(description, error, context)

    def poll_deliveries(self) -> None:
        """Handle delivery reports of dead letter queue records. Raises ConnectError if one was lost. Does not block."""
        if self._dead_letter_queue is not None:
            self._dead_letter_queue.poll_deliveries()

    def flush(self, seconds: float, check: Callable[[], None] = _never_interrupted) -> bool:
        """Wait until all dead letter queue records are in Kafka; return False after ``seconds``. Call before each commit.

        ``check`` is called while waiting and may raise to end it. Raises ConnectError if a record was lost; then no offset
        may be committed any more.
        """
        return self._dead_letter_queue is None or self._dead_letter_queue.flush(seconds, check)

    def close(self) -> None:
        """Log how many records were skipped and close the dead letter queue. Never raises."""
        if self.skipped:
            log.warning("Task %s skipped %d records in all: %s", self._task, self.skipped, self.counts)
        if self._dead_letter_queue is not None:
            self._dead_letter_queue.close()

    def _fail(self, description: str, error: Exception, context: ProcessingContext) -> Future[None]:
        counts = self.counts
        counts.record_errors += 1
        counts.last_error_timestamp = time.time_ns() // 1_000_000
        reported = self._report(error, context)
        if not self.settings.tolerant:
            raise ConnectError(f"Tolerance exceeded in error handler: {description}: {error}") from error
        counts.records_skipped += 1
        if not self.settings.log:
            self._log_rate_limited(description, error)
        return reported

    def _report(self, error: Exception, context: ProcessingContext) -> Future[None]:
        """Write to the log and the dead letter queue as the settings say, even if the task then fails."""
        if self.settings.log:
            log.error(error_log_message(context, self._task, include_record=self.settings.log_messages), exc_info=error)
            self.counts.errors_logged += 1
        if self._dead_letter_queue is None:
            return _done()
        self.counts.deadletterqueue_produce_requests += 1
        record = dead_letter_record(context, error, self._task, context_headers=self.settings.dead_letter_headers)
        sent = self._dead_letter_queue.send(record)
        sent.add_done_callback(self._count_delivery)
        return sent

    def _log_rate_limited(self, description: str, error: Exception) -> None:
        """Log each of the first skipped records, then one every ten seconds, so that bad records cannot flood the log."""
        now = time.monotonic()
        if self.skipped > _LOGGED_ONE_BY_ONE and now < self._next_log:
            return
        self._next_log = now + _LOG_SECONDS
        log.error("Skipped a record (%d skipped so far): %s: %s", self.skipped, description, error)

    def _count_delivery(self, sent: Future[None]) -> None:
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
