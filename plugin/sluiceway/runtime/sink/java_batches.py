"""Makes the batches of Java sink tasks whose converters and transforms run in Java, too: messages cross as they were consumed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sluiceway.api import TopicPartition
from sluiceway.errors import ConnectError
from sluiceway.java_plugins.errors import java_error
from sluiceway.java_plugins.sink_task import JavaSinkTask, MessagesInJava
from sluiceway.kafka.clients import ConsumedMessage
from sluiceway.runtime.errors.processing_context import ConsumerRecord, ProcessingContext, Stage, named_class
from sluiceway.runtime.errors.retry_with_tolerance import RetryWithToleranceOperator
from sluiceway.runtime.sink.sink_batches import SinkPart
from sluiceway.runtime.sink.sink_records import SinkBatch

Converted = int | Mapping[str, Any]
"""The number of records, or a description of the message that failed."""


@dataclass(slots=True)
class JavaSinkBatch(SinkBatch):
    """Records that are in Java."""

    task: JavaSinkTask | None = None

    def drop(self, partitions: frozenset[TopicPartition]) -> None:
        """Drop the records and offsets of partitions that are no longer assigned."""
        if self.task is not None and not partitions.isdisjoint(self.starts):
            self.records = MessagesInJava(self.task.drop(partitions))
        for partition in partitions:
            self.starts.pop(partition, None)
            self.ends.pop(partition, None)


class JavaSinkBatches:
    """Does for Java tasks what ``SinkBatches`` does for others. Not thread-safe."""

    def __init__(self, task: JavaSinkTask, tolerance: RetryWithToleranceOperator, new_topic: Callable[[str], None]) -> None:
        self._task = task
        self._tolerance = tolerance
        self._new_topic = new_topic

    def parts(self, messages: Sequence[ConsumedMessage], *, one_partition: bool) -> Sequence[SinkPart]:
        """Return the messages in one part."""
        return (SinkPart(messages),)

    def batch(self, part: SinkPart) -> SinkBatch:
        """Return the converted and transformed batch of a part. Raises Interrupted or Abandoned if a retry is interrupted."""
        messages, failure = part.messages, None
        converted: Converted = self._task.convert_messages(messages)
        taken = len(messages)
        while isinstance(converted, Mapping):
            described = converted
            index: int = described["index"]
            try:
                converted = self._after_failure(messages[index], described)
            except ConnectError as error:
                failure, taken, converted = error, index, described["count"]
        starts, ends = _positions(messages, taken)
        for topic, _ in starts:
            self._new_topic(topic)
        return JavaSinkBatch(MessagesInJava(converted), starts=starts, ends=ends, failure=failure, task=self._task)

    def columns_put(self) -> None:
        """Java tasks take no columns."""

    def not_columnar(self, part: SinkPart) -> SinkBatch:
        """Java tasks take no columns."""
        return self.batch(part)

    def _after_failure(self, message: ConsumedMessage, described: Mapping[str, Any]) -> Converted:
        """Retry or skip a message that failed, and convert those after it. Raises ConnectError if it is not tolerated."""
        original = ConsumerRecord.of(message)
        stage = Stage[described["stage"]]
        what = f"transformed by {described['alias']}" if stage is Stage.TRANSFORMATION else "converted"
        description = f"the record at offset {original.offset} of {original.topic}-{original.partition} cannot be {what}"

        def retry() -> Converted:
            again = self._task.convert_again()
            if not isinstance(again, int) and again["index"] == described["index"]:
                raise java_error(again)
            return again

        context = ProcessingContext(stage, named_class(described["by"]), original)
        converted = self._tolerance.retry(retry, description, java_error(described), context)
        return self._task.skip() if converted is None else converted


def _positions(messages: Sequence[ConsumedMessage], taken: int) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    """Return the first offset of each partition, and the next one to read after the first ``taken`` messages."""
    starts: dict[TopicPartition, int] = {}
    ends: dict[TopicPartition, int] = {}
    for index, message in enumerate(messages):
        partition = TopicPartition(message.topic(), message.partition())
        starts.setdefault(partition, message.offset())
        if index < taken:
            ends[partition] = message.offset() + 1
        else:
            ends.setdefault(partition, message.offset())
    return starts, ends
