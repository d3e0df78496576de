"""Delivers the batches of Java source tasks, whose records arrive converted, and handles the records that failed in Java."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from sluiceway.api import SourceRecord
from sluiceway.java_plugins.errors import java_error
from sluiceway.java_plugins.packed import PackedPart
from sluiceway.java_plugins.source_task import JavaSourceTask
from sluiceway.runtime.errors.processing_context import ProcessingContext, Stage, named_class
from sluiceway.runtime.errors.retry_with_tolerance import RetryWithToleranceOperator
from sluiceway.runtime.interrupts import Interrupted
from sluiceway.runtime.source.delivery import Delivery
from sluiceway.runtime.source.offset_storage import OffsetStorageWriter
from sluiceway.runtime.source.submitted_records import SubmittedPacked
from sluiceway.runtime.source.transaction_boundary import CommitAction

_ACTIONS = {None: CommitAction.CONTINUE, "COMMIT": CommitAction.COMMIT, "ABORT": CommitAction.ABORT}


class PackedBatches:
    """Delivers a Java task's batches. Runs on an executor. Not thread-safe.

    ``apply`` carries out what the task wants after a record: the end of its transaction.
    """

    def __init__(
        self,
        task: JavaSourceTask,
        tolerance: RetryWithToleranceOperator,
        delivery: Delivery,
        offsets: OffsetStorageWriter,
        apply: Callable[[CommitAction], None],
    ) -> None:
        self._task = task
        self._tolerance = tolerance
        self._delivery = delivery
        self._offsets = offsets
        self._apply = apply
        self._start = 0  # the index in the batch behind the records that were submitted

    def send(self, part: PackedPart) -> None:
        """Deliver a batch, given its first part. Raises ConnectError for a record that failed and is not tolerated."""
        self._start = 0
        while True:
            for skipped in part.skipped:
                description, context = _explained(skipped)
                self._tolerance.execute_failed(description, java_error(skipped), context)
            retried = None if part.failure is None else self._after_failure(part)
            self._delivery.send(self._submitted(part))
            self._add_offsets(part)
            self._apply(_ACTIONS[part.action])
            if retried is not None:
                part = retried
            elif part.failure is not None:
                part = self._task.skip()
            elif part.last:
                return
            else:
                part = self._task.next_part()

    def _after_failure(self, part: PackedPart) -> PackedPart | None:
        """Retry the record that failed; return the part that starts with it, or None if it must be skipped."""
        described = part.failure or {}

        def retry() -> PackedPart:
            again = self._task.next_part()
            if again.failure is not None and again.end == part.end:
                raise java_error(again.failure)
            return again

        description, context = _explained(described)
        try:
            return self._tolerance.retry(retry, description, java_error(described), context)
        except (Exception, Interrupted):
            self._delivery.send_before_failure(self._submitted(part))
            self._add_offsets(part)  # a delivery that has not sent the part drops them
            raise

    def _add_offsets(self, part: PackedPart) -> None:
        for partition, offset in part.offsets:
            self._offsets.add(partition, offset)

    def _submitted(self, part: PackedPart) -> SubmittedPacked:
        sent = self._task.sent_records(part.batch) if self._task.wants_acknowledgements else None
        start, self._start = self._start, part.end
        return SubmittedPacked(part, sent, start, functools.partial(self._task.offsets_before, part.batch))


def _explained(described: Mapping[str, Any]) -> tuple[str, ProcessingContext]:
    """Return which record failed and how, for messages and reports."""
    stage, record = Stage[described["stage"]], FailedRecord(described)
    what = "transformed" if stage is Stage.TRANSFORMATION else "converted"
    description = f"a record for topic {record.topic} with source offset {described['offset']} cannot be {what}"
    return description, ProcessingContext(stage, named_class(described["by"]), record)


class FailedRecord(SourceRecord):
    """A record that failed in Java; ``str`` returns Java's text of it."""

    __slots__ = ("text",)

    def __init__(self, described: Any) -> None:
        super().__init__(None, None, described["topic"] or "", None)
        self.text: str = described["record"]

    def __str__(self) -> str:
        return self.text
