"""Source records that Kafka refuses for what they are, where ``errors.tolerance=all`` lets them be left out (KIP-779)."""

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

log = logging.getLogger(__name__)

# What another record would not meet. A topic that may not be written, or a cluster that is away, is not the record's fault:
# to leave out records for that would leave out all of them.
_OF_THE_RECORD = frozenset(
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
"""Called while something is waited for; raises to give up."""


class Awaited(Protocol):
    """Whoever is told what became of a record: partition and offset, or -1 twice for one that was left out."""

    def acknowledged(self, partition: int, offset: int) -> None: ...


class SendAlone(Protocol):
    """Sends a record in a request of its own; returns Kafka's error, or None. ``check`` raises to give up."""

    def __call__(self, record: SourceRecord, awaited: Awaited | None, check: Check) -> ConnectError | None: ...


class _Refused(NamedTuple):
    record: SourceRecord
    awaited: Awaited | None


class FailedSends:
    """For one thread, on an executor.

    Kafka refuses requests, which hold many records, so each record is sent once more by itself before it is left out. Those
    that then pass come after records that were read later.
    """

    def __init__(self, tolerance: RetryWithToleranceOperator, alone: SendAlone, executing_class: type) -> None:
        self._tolerance = tolerance
        self._alone = alone
        self._class = executing_class
        self._refused: deque[_Refused] = deque()
        self._warned = False

    def __len__(self) -> int:
        """How many records there are whose fate is not settled; until it is, no offset may be stored."""
        return len(self._refused)

    def take(self, record: SourceRecord, awaited: Awaited | None, error: ConnectError) -> bool:
        """Take a record that was refused; False if its error is no fault of the record's."""
        if not is_record_error(error):
            return False
        self._refused.append(_Refused(record, awaited))
        return True

    def settle(self, check: Check) -> None:
        """Send what was refused once more, and leave out what is refused again. Raises ConnectError for all other errors.

        Stops where it is if ``check`` raises Interrupted.
        """
        while self._refused:
            record, awaited = self._refused[0]
            try:
                error = self._alone(record, awaited, check)
                if error is not None:
                    self.leave_out(record, awaited, error)
                elif not self._warned:
                    self._warned = True
                    log.warning(
                        "Topic %s takes records only one at a time that it refused together; lower "
                        "producer.override.batch.size below its max.message.bytes",
                        record.topic,
                    )
            except Interrupted:
                return
            self._refused.popleft()

    def leave_out(self, record: SourceRecord, awaited: Awaited | None, error: ConnectError) -> None:
        """Count, log or dead-letter a record as ``errors.*`` says; its offset counts. Raises ``error`` if it is not its fault."""
        if not is_record_error(error):
            raise error
        place = f"a record for topic {record.topic} with source offset {record.source_offset} cannot be sent"
        self._tolerance.refuse(place, error, ProcessingContext(Stage.KAFKA_PRODUCE, self._class, record))
        if awaited is not None:
            awaited.acknowledged(-1, -1)


def is_record_error(error: ConnectError) -> bool:
    """Whether an error is about one record and not about its topic or the cluster."""
    return getattr(error, "code", None) in _OF_THE_RECORD
