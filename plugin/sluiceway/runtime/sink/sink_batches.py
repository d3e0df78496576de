"""Makes the batches for a sink task from polled messages: as columns where task, converters and chain can, else as records."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from sluiceway.api import ColumnBatch, NotColumnar, Refusal, RowFormReason, SinkRecord, TopicPartition
from sluiceway.java_plugins.fetched import FetchedMessages
from sluiceway.kafka.clients import ConsumedMessage
from sluiceway.runtime.columns import FEW_RECORDS, FEWEST_RECORDS, BatchForms
from sluiceway.runtime.errors.retry_with_tolerance import RetryWithToleranceOperator
from sluiceway.runtime.interrupts import Interrupted
from sluiceway.runtime.sink.polled import without
from sluiceway.runtime.sink.sink_records import SinkBatch, SinkRecordConverter
from sluiceway.runtime.task_converters import Converters
from sluiceway.runtime.transforms.transformation_chain import TransformationChain

if TYPE_CHECKING:
    from sluiceway.runtime.sink.column_reader import ColumnReader


class SinkPart(NamedTuple):
    """Successive messages of a poll: of one topic partition with their columns, or of any for the row form (None).

    With ``dropped`` the transforms have dropped all of the messages. ``refusal`` is why the row form must handle the first of
    them, None if columns were not tried.
    """

    messages: Sequence[ConsumedMessage]
    columns: ColumnBatch | None = None
    dropped: bool = False
    refusal: Refusal | None = FEW_RECORDS

    def without(self, partitions: frozenset[TopicPartition]) -> SinkPart:
        """Return the part without the messages of these partitions."""
        left = without(self.messages, partitions)
        return self if left is self.messages else SinkPart(left, refusal=self.refusal)

    def with_more(self, part: SinkPart) -> SinkPart:
        """Return a part of the row form with the messages of the next one. A reason counts more than that they are few."""
        refusal = part.refusal if self.refusal is FEW_RECORDS else self.refusal
        return SinkPart([*self.messages, *part.messages], refusal=refusal)


class PutSince(NamedTuple):
    """A batch that a task has read itself and put, and the seconds that took."""

    messages: FetchedMessages
    seconds: float
    batch: SinkBatch


class SinkBatches:
    """Converts and transforms messages. Not thread-safe.

    ``forms`` decides whether the task takes columns, ``schemaless`` whether also those without a schema. ``needs_schemas`` tells
    whether it can write only records with one. The row form handles everything that has no columnar form, bad messages among it,
    so that errors are the same in both.
    """

    def __init__(
        self,
        converters: Converters,
        chain: TransformationChain[SinkRecord],
        tolerance: RetryWithToleranceOperator,
        new_topic: Callable[[str], None],
        forms: BatchForms,
        *,
        schemaless: bool = False,
        needs_schemas: bool = False,
    ) -> None:
        self._converters = converters
        self._converter = SinkRecordConverter(converters, tolerance, new_topic, needs_schemas=needs_schemas)
        self._chain = chain
        self._tolerance = tolerance
        self._new_topic = new_topic
        self._forms = forms
        self._schemaless = schemaless
        self._reader: ColumnReader | None = None

    def parts(self, messages: Sequence[ConsumedMessage], *, one_topic: bool) -> Sequence[SinkPart]:
        """Return the messages in order in one or several parts. ``one_topic``: all are of one topic."""
        if self._forms.always is None and len(messages) < FEWEST_RECORDS:
            return (SinkPart(messages),)
        if not self._forms.next():
            return (SinkPart(messages, refusal=None),)
        read = self._loaded_reader().parts(messages, one_topic=one_topic)
        parts = [transformed for part in read for transformed in self._transformed(part)]
        if all(part.columns is None and not part.dropped for part in parts):
            self._forms.failed()
        return parts

    def batch(self, part: SinkPart) -> SinkBatch:
        """Return the transformed batch of a part. Raises Interrupted or Abandoned if a retry is interrupted."""
        if part.columns is None and not part.dropped:
            if part.messages:
                self._forms.rows(part.refusal, part.messages[0].topic())
            return self.rows(part)
        if part.dropped:
            self._forms.columnar()
        first, last = part.messages[0], part.messages[-1]
        partition = TopicPartition(first.topic(), first.partition())
        return SinkBatch(columns=part.columns, starts={partition: first.offset()}, ends={partition: last.offset() + 1})

    def rows(self, part: SinkPart) -> SinkBatch:
        """Return the batch of a part in row form."""
        batch = self._converter.convert(part.messages)
        batch.transform(self._chain, self._tolerance)
        if isinstance(batch.failure, Interrupted):
            raise batch.failure
        return batch

    def put_since(self, _batch: SinkBatch) -> Sequence[PutSince]:
        """Return nothing: these tasks read nothing themselves."""
        return ()

    def columns_put(self) -> None:
        """Record that the task has taken columns."""
        self._forms.columnar()

    def not_columnar(self, part: SinkPart, error: NotColumnar) -> SinkBatch:
        """Return the batch of a part in row form, because its columns could not be put."""
        self._forms.failed()
        self._forms.rows(error.refusal, part.messages[0].topic(), part.columns)
        return self.rows(part)

    def _transformed(self, part: SinkPart) -> list[SinkPart]:
        """Return the parts that transforms make of a part, without columns if they have no columnar form."""
        if part.columns is None:
            return [part]
        messages = part.messages
        try:
            batches = self._chain.columns(part.columns)
        except NotColumnar as error:
            return [SinkPart(messages, refusal=error.refusal._replace(schema=part.columns.value.schema))]
        if not batches:
            return [SinkPart(messages, dropped=True)]
        if not self._schemaless and any(_has_objects(batch) for batch in batches):
            return [SinkPart(messages, refusal=_SCHEMALESS)]
        if len(batches) == 1:
            return [SinkPart(messages, batches[0])]
        firsts = [_first_offset(batch) for batch in batches[1:]]
        starts = [0, *(bisect.bisect_left(messages, offset, key=lambda message: message.offset()) for offset in firsts)]
        ends = [*starts[1:], len(messages)]
        return [SinkPart(messages[start:end], batch) for start, end, batch in zip(starts, ends, batches, strict=True)]

    def _loaded_reader(self) -> ColumnReader:
        if self._reader is None:
            from sluiceway.runtime.sink.column_reader import ColumnReader  # loads Arrow

            self._reader = ColumnReader(self._converters, self._new_topic)
        return self._reader


_SCHEMALESS = Refusal(RowFormReason.TASK, "the task takes no columns without a schema")


def _has_objects(batch: ColumnBatch) -> bool:
    return batch.key.objects is not None or batch.value.objects is not None


def _first_offset(batch: ColumnBatch) -> int:
    assert batch.offsets is not None  # noqa: S101 (a sink's batch has offsets)
    return int(batch.offsets[0].as_py())
