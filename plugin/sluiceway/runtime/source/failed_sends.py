"""Skips source records that Kafka rejects for their content, if ``errors.tolerance=all`` (KIP-779)."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, Protocol

from sluiceway.api import SourceRecord
from sluiceway.errors import ConnectError
from sluiceway.runtime.errors.processing_context import ProcessingContext, Stage
from sluiceway.runtime.errors.retry_with_tolerance import RetryWithToleranceOperator
from sluiceway.runtime.interrupts import Interrupted
from sluiceway.runtime.source.submitted_records import SubmittedRecord, skipped

log = logging.getLogger(__name__)

# Errors about one record. An error about a topic or the cluster would affect the next record too: skipping for it would skip
# every record.
_RECORD_ERRORS = frozenset(
    {
        "INVALID_MSG",
        "INVALID_MSG_SIZE",
        "INVALID_RECORD",
        "INVALID_TIMESTAMP",
        "MSG_SIZE_TOO_LARGE",
        "POLICY_VIOLATION",
        "RECORD_LIST_TOO_LARGE",
        "TOPIC_EXCEPTION",
        "UNSUPPORTED_FOR_MESSAGE_FORMAT",
        "_INVALID_DIFFERENT_RECORD",
        "_UNKNOWN_PARTITION",
    }
)

Check = Callable[[], None]
"""Called while waiting; raises to end the wait."""


def describe_source_record(record: SourceRecord) -> str:
    """Return the topic and source offset of a record, for messages."""
    return f"a record for topic {record.topic} with source offset {record.source_offset}"


class SendAlone(Protocol):
    """Sends a record in a request of its own. Returns Kafka's error, or None. ``check`` may raise to end the wait."""

    def __call__(self, record: SourceRecord, submitted: SubmittedRecord | None, check: Check) -> ConnectError | None: ...


class _FailedSend(NamedTuple):
    record: SourceRecord
    submitted: SubmittedRecord | None


class FailedSends:
    """Sends rejected records again, one by one, and skips those that are rejected again. Not thread-safe.

    Kafka rejects whole requests, which hold many records. A record that is accepted on its own is written after records that
    the task returned later.
    """

    def __init__(self, tolerance: RetryWithToleranceOperator, send_alone: SendAlone, executing_class: type) -> None:
        self._tolerance = tolerance
        self._send_alone = send_alone
        self._executing_class = executing_class
        self._failed: deque[_FailedSend] = deque()
        self._warned = False

    def __len__(self) -> int:
        """Return the number of rejected records not yet sent again or skipped. While it is positive, store no offsets."""
        return len(self._failed)

    def add(self, record: SourceRecord, submitted: SubmittedRecord | None, error: ConnectError) -> bool:
        """Keep a rejected record for ``resend``. Return False if its error is not about the record."""
        if not is_record_error(error):
            return False
        self._failed.append(_FailedSend(record, submitted))
        return True

    def resend(self, check: Check) -> None:
        """Send all rejected records again and skip those rejected again. Raises ConnectError for other errors.

        Returns early, keeping the remaining records, if ``check`` raises Interrupted.
        """
        while self._failed:
            record, submitted = self._failed[0]
            try:
                error = self._send_alone(record, submitted, check)
                if error is not None:
                    self.skip(record, submitted, error)
                elif not self._warned:
                    self._warned = True
                    log.warning(
                        "Topic %s rejected a request of several records but accepts them one at a time, which is slow. Lower "
                        "producer.override.batch.size below the topic's max.message.bytes",
                        record.topic,
                    )
            except Interrupted:
                return
            self._failed.popleft()

    def skip(self, record: SourceRecord, submitted: SubmittedRecord | None, error: ConnectError) -> None:
        """Skip and report a record, as the ``errors.*`` keys say. Raises ``error`` if it is not about the record."""
        if not is_record_error(error):
            raise error
        description = f"{describe_source_record(record)} cannot be sent"
        self._tolerance.execute_failed(description, error, ProcessingContext(Stage.KAFKA_PRODUCE, self._executing_class, record))
        skipped(submitted)


def is_record_error(error: ConnectError) -> bool:
    """Return True for an error about one record, False for one about its topic or the cluster."""
    return getattr(error, "code", None) in _RECORD_ERRORS
