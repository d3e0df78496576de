"""Makes the batches of Java sink tasks whose converters and transforms run in Java, too: messages cross as they were consumed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sluiceway.api import NotColumnar, TopicPartition
from sluiceway.errors import ConnectError
from sluiceway.java_plugins.errors import java_error
from sluiceway.java_plugins.fetched import FetchedMessages
from sluiceway.java_plugins.messages import runs_of
from sluiceway.java_plugins.sink_task import JavaSinkTask, MessagesForJava, NotConvertedError, ReportedMessage
from sluiceway.kafka.clients import ConsumedMessage
from sluiceway.runtime.errors.processing_context import ConsumerRecord, ProcessingContext, Stage, named_class
from sluiceway.runtime.errors.retry_with_tolerance import RetryWithToleranceOperator
from sluiceway.runtime.sink.polled import without
from sluiceway.runtime.sink.sink_batches import PutSince, SinkPart
from sluiceway.runtime.sink.sink_records import SinkBatch

Converted = int | Mapping[str, Any]
"""The number of records in Java, or a description of messages that failed."""


@dataclass(slots=True)
class JavaSinkBatch(SinkBatch):
    """Messages that Java converts during ``put``, or records that are in Java."""

    task: JavaSinkTask | None = None

    def drop(self, partitions: frozenset[TopicPartition]) -> None:
        """Drop the records and offsets of partitions that are no longer assigned."""
        records = self.records
        if isinstance(records, MessagesForJava) and self.task is not None and not partitions.isdisjoint(self.starts):
            if records.messages is None:
                self.records = MessagesForJava(None, self.task.drop(partitions))
            else:
                self.records = MessagesForJava(without(records.messages, partitions))
        for partition in partitions:
            self.starts.pop(partition, None)
            self.ends.pop(partition, None)


class JavaSinkBatches:
    """Does for Java tasks what ``SinkBatches`` does for others. Not thread-safe."""

    def __init__(self, task: JavaSinkTask, tolerance: RetryWithToleranceOperator, new_topic: Callable[[str], None]) -> None:
        self._task = task
        self._tolerance = tolerance
        self._new_topic = new_topic

    def parts(self, messages: Sequence[ConsumedMessage], *, one_topic: bool) -> Sequence[SinkPart]:
        """Return the messages in one part."""
        return (SinkPart(messages),)

    def batch(self, part: SinkPart) -> SinkBatch:
        """Return a batch whose ``put`` converts and transforms the messages."""
        return self._batch(MessagesForJava(part.messages), part.messages, len(part.messages), None)

    def columns_put(self) -> None:
        """Java tasks take no columns."""

    def not_columnar(self, part: SinkPart, error: NotColumnar) -> SinkBatch:
        """Return the batch of messages of which one failed. Raises Interrupted or Abandoned if a retry is interrupted."""
        if not isinstance(error, NotConvertedError):
            raise error
        messages = error.messages
        converted: Converted = error.described
        while isinstance(converted, Mapping):
            described, again = converted, None
            for each in described["failures"]:
                original = _record(error.message(each))
                try:
                    again = self._after_failure(original, each)
                except ConnectError as failure:
                    records = MessagesForJava(None, described["count"])
                    return self._batch(records, messages, each["index"], failure, original.offset)
            if again is None and described["more"]:
                again = self._task.convert_again()
            converted = described["count"] if again is None else again
        return self._batch(MessagesForJava(None, converted), messages, len(messages), None)

    def _batch(
        self,
        records: MessagesForJava,
        messages: Sequence[ConsumedMessage],
        taken: int,
        failure: ConnectError | None,
        failed: int | None = None,
    ) -> SinkBatch:
        if isinstance(messages, FetchedMessages):
            starts, ends = messages.starts, messages.ends(taken, failed)
        else:
            starts, ends = positions_of(messages, taken)
        for topic, _ in starts:
            self._new_topic(topic)
        return JavaSinkBatch(records, starts=starts, ends=ends, failure=failure, task=self._task)

    def put_since(self, batch: SinkBatch) -> Sequence[PutSince]:
        """Return what the task has read and put in the same call as this batch."""
        if not isinstance(batch.records, MessagesForJava):
            return ()
        found = []
        for messages, records, seconds in batch.records.put_since:
            found.append(PutSince(messages, seconds, self._batch(MessagesForJava(None, records), messages, len(messages), None)))
        return found

    def _after_failure(self, original: ConsumerRecord, described: Mapping[str, Any]) -> Converted | None:
        """Retry or skip a message that failed, and convert those after it; return None if Java has done the latter already.

        Raises ConnectError if the error is not tolerated.
        """
        stage = Stage[described["stage"]]
        what = f"transformed by {described['alias']}" if stage is Stage.TRANSFORMATION else "converted"
        description = f"the record at offset {original.offset} of {original.topic}-{original.partition} cannot be {what}"
        context = ProcessingContext(stage, named_class(described["by"]), original)
        if self._task.skips:
            self._tolerance.execute_failed(description, java_error(described), context)
            return None

        def retry() -> Converted:
            again = self._task.convert_again()
            if not isinstance(again, int) and again["failures"][0]["index"] == described["index"]:
                raise java_error(again["failures"][0])
            return again

        converted = self._tolerance.retry(retry, description, java_error(described), context)
        return self._task.skip() if converted is None else converted


def _record(message: ConsumedMessage | ReportedMessage) -> ConsumerRecord:
    return ConsumerRecord(*message) if isinstance(message, ReportedMessage) else ConsumerRecord.of(message)


def positions_of(messages: Sequence[ConsumedMessage], taken: int) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    """Return the first offset of each partition, and the next one to read after the first ``taken`` messages."""
    starts: dict[TopicPartition, int] = {}
    ends: dict[TopicPartition, int] = {}
    first = 0
    for topic, number, count in runs_of(messages):
        partition, begin = TopicPartition(topic, number), messages[first].offset()
        starts.setdefault(partition, begin)
        if first < taken:
            last = min(first + count, taken) - 1
            ends[partition] = messages[last].offset() + 1
        if first + count > taken:  # the first of the partition that is not taken
            ends.setdefault(partition, begin)
        first += count
    return starts, ends
