"""Reports records that a sink task could not write (KIP-610), with the messages they were read from."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future

from sluiceway.api import SinkRecord, SinkTask
from sluiceway.errors import DataError
from sluiceway.runtime.errors.processing_context import ConsumerRecord, ProcessingContext, Stage, named_class
from sluiceway.runtime.errors.retry_with_tolerance import RetryWithToleranceOperator
from sluiceway.runtime.interrupts import Abandoned, Interrupted
from sluiceway.runtime.task_converters import Converters
from sluiceway.runtime.transforms.transformed_batch import TransformedBatch

_JAVA_TASK = named_class("org.apache.kafka.connect.sink.SinkTask")


class InternalSinkRecord(SinkRecord):
    """A sink record with the message it was read from. Used only if records can be reported, because it keeps the bytes."""

    __slots__ = ("original",)

    original: ConsumerRecord


def consumer_record_of(record: SinkRecord) -> ConsumerRecord:
    """Return the message a record was read from, without key, value and headers if it was not kept."""
    return record.original if isinstance(record, InternalSinkRecord) else ConsumerRecord.without_payload(record)


def with_originals(batch: TransformedBatch[SinkRecord], sources: Sequence[SinkRecord]) -> list[SinkRecord]:
    """Return a transformed batch's records, each with the message of the record it was made from."""
    origins = range(len(batch.records)) if batch.origins is None else batch.origins
    return [
        record if isinstance(record, InternalSinkRecord) else _with_original(record, consumer_record_of(sources[origin]))
        for origin, record in zip(origins, batch.records, strict=True)
    ]


def _with_original(record: SinkRecord, original: ConsumerRecord) -> InternalSinkRecord:
    internal = InternalSinkRecord.__new__(InternalSinkRecord)
    for name in SinkRecord.__slots__:
        setattr(internal, name, getattr(record, name))
    internal.original = original
    return internal


class WorkerErrantRecordReporter:
    """Implements ``ErrantRecordReporter``. The task may call ``report`` from any thread."""

    def __init__(self, tolerance: RetryWithToleranceOperator, converters: Converters) -> None:
        self._tolerance = tolerance
        self._converters = converters
        self._raised: Exception | Interrupted | Abandoned | None = None

    def report(self, record: SinkRecord, error: BaseException) -> Future[None]:
        """Log a record and send it to the dead letter queue, as the connector's ``errors.*`` keys say.

        The future is done once the dead letter queue record is in Kafka; offsets are not committed before. Raises
        ConnectError if errors are not tolerated: the task then fails even if it catches this. Raises Interrupted or
        Abandoned if the task must stop while the dead letter queue's buffer is full.
        """
        original = record.original if isinstance(record, InternalSinkRecord) else self._converted(record)
        return self._report(original, error, SinkTask)

    def report_message(self, original: ConsumerRecord, error: BaseException) -> Future[None]:
        """Report a Java task's record like ``report``, by the message it was read from."""
        return self._report(original, error, _JAVA_TASK)

    def _report(self, original: ConsumerRecord, error: BaseException, executing_class: type) -> Future[None]:
        cause = error if isinstance(error, Exception) else DataError(str(error))
        description = f"the record at offset {original.offset} of {original.topic}-{original.partition} could not be written"
        try:
            return self._tolerance.execute_failed(
                description, cause, ProcessingContext(Stage.TASK_PUT, executing_class, original)
            )
        except (Exception, Interrupted, Abandoned) as raised:  # the task may catch it, or be in another thread
            self._raised = self._raised or raised
            raise

    def check(self) -> None:
        """Raise what ``report`` raised, in case the task caught it. Call after ``put`` and ``pre_commit``."""
        raised, self._raised = self._raised, None
        if raised is not None:
            raise raised

    def _converted(self, record: SinkRecord) -> ConsumerRecord:
        """Return the message for a record that the task created itself."""
        converters, topic = self._converters, record.topic
        return ConsumerRecord(
            topic,
            record.kafka_partition,
            record.kafka_offset,
            record.timestamp_type,
            -1 if record.timestamp is None else record.timestamp,
            converters.key.from_connect_data(topic, record.key_schema, record.key),
            converters.value.from_connect_data(topic, record.value_schema, record.value),
            converters.headers_to_kafka(topic, record.headers),
        )
