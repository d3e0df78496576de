"""Records that a sink task could not write (KIP-610), and the messages that they were made of."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future

from sluiceway.api import SinkRecord, SinkTask
from sluiceway.errors import DataError
from sluiceway.runtime.errors.processing_context import ConsumerRecord, ProcessingContext, Stage
from sluiceway.runtime.errors.retry_with_tolerance import RetryWithToleranceOperator
from sluiceway.runtime.interrupts import Abandoned, Interrupted
from sluiceway.runtime.task_converters import Converters
from sluiceway.runtime.transforms.transformation_chain import TransformedBatch


class InternalSinkRecord(SinkRecord):
    """A record that knows what it was read as, for as long as somebody holds it. Made only where records can be reported."""

    __slots__ = ("message",)

    message: ConsumerRecord


def consumer_record_of(record: SinkRecord) -> ConsumerRecord:
    """Return the message of a record, or at least where it was read."""
    return record.message if isinstance(record, InternalSinkRecord) else ConsumerRecord.without_payload(record)


def with_originals(made: TransformedBatch[SinkRecord], sources: Sequence[SinkRecord]) -> list[SinkRecord]:
    """Return a chain's records, each with the message of the record it was made of."""
    origins = range(len(made.records)) if made.origins is None else made.origins
    return [
        record if isinstance(record, InternalSinkRecord) else _with_message(record, consumer_record_of(sources[origin]))
        for origin, record in zip(origins, made.records, strict=True)
    ]


def _with_message(record: SinkRecord, message: ConsumerRecord) -> InternalSinkRecord:
    known = InternalSinkRecord.__new__(InternalSinkRecord)
    for name in SinkRecord.__slots__:
        setattr(known, name, getattr(record, name))
    known.message = message
    return known


class WorkerErrantRecordReporter:
    """See ``ErrantRecordReporter``. ``report`` may be called by any thread of the task's."""

    def __init__(self, tolerance: RetryWithToleranceOperator, converters: Converters) -> None:
        self._tolerance = tolerance
        self._converters = converters
        self._refusal: Exception | Interrupted | Abandoned | None = None

    def report(self, record: SinkRecord, error: BaseException) -> Future[None]:
        """Log a record and send it to the dead letter topic, as the connector's ``errors.*`` keys say.

        The future is done once the dead letter is in Kafka; offsets are not committed before. Raises ConnectError if no
        error is tolerated: the task fails then, even if it goes on as if nothing had been raised. Raises Interrupted or
        Abandoned if the task must stop while the dead letter queue's buffer is full.
        """
        original = record.message if isinstance(record, InternalSinkRecord) else self._converted(record)
        place = f"{original.topic}-{original.partition}"
        problem = error if isinstance(error, Exception) else DataError(str(error))
        try:
            what = f"the record at offset {original.offset} of {place} could not be written"
            return self._tolerance.report(what, problem, ProcessingContext(Stage.TASK_PUT, SinkTask, original))
        except (Exception, Interrupted, Abandoned) as refusal:  # a task may swallow even these, or call from another thread
            self._refusal = self._refusal or refusal
            raise

    def check(self) -> None:
        """Raise what ``report`` has raised, in case the task did not let it out. Called after ``put`` and ``pre_commit``."""
        refusal, self._refusal = self._refusal, None
        if refusal is not None:
            raise refusal

    def _converted(self, record: SinkRecord) -> ConsumerRecord:
        """Return the message that a record of the task's own making would be."""
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
