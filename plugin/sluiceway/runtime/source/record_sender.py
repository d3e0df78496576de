"""Converts and produces a source task's records; the barrier that says they have all arrived."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sluiceway.api import SourceRecord
from sluiceway.data import Schema
from sluiceway.errors import ConnectError, KafkaClientError
from sluiceway.kafka.clients import producer
from sluiceway.kafka.errors import mapped_errors, to_connect_error
from sluiceway.runtime.errors.processing_context import ProcessingContext, Stage
from sluiceway.runtime.errors.retry_with_tolerance import RetryWithToleranceOperator
from sluiceway.runtime.interrupts import Interrupted
from sluiceway.runtime.source.failed_sends import Awaited, FailedSends, is_record_error
from sluiceway.runtime.source.offset_storage import OffsetStorageWriter
from sluiceway.runtime.source.producer_errors import producer_error, record_error
from sluiceway.runtime.source.submitted_records import SubmittedRecords
from sluiceway.runtime.task_converters import Converters

_SLICE_SECONDS = 0.1
_PURGED = ("_PURGE_QUEUE", "_PURGE_INFLIGHT")

Encode = Callable[[Any], bytes | None]
_Converted = tuple["bytes | None", "bytes | None", dict[str, Any]]
Acknowledge = Callable[[SourceRecord, int, int], None]


def describe_source_record(record: SourceRecord) -> str:
    """Return what tells a source's record from others, for messages."""
    return f"a record for topic {record.topic} with source offset {record.source_offset}"


class RecordSender:
    """Hands records to a producer and remembers their source offsets. For one thread, on an executor.

    ``interrupt`` is called while the sender waits for room in the producer's buffer; it raises to give up.
    ``new_topic`` is called with each topic before the first record to it; what it raises ends the sending.
    ``acknowledge``, if given, is called with each of the task's own records once Kafka has all that became of it, with
    partition and offset (-1 for one that was dropped or skipped): that costs speed.
    With ``tolerant`` a record that Kafka refuses is left out as ``errors.*`` says; a transaction bears no such gap.
    """

    def __init__(
        self,
        config: Mapping[str, str],
        converters: Converters,
        offsets: OffsetStorageWriter,
        tolerance: RetryWithToleranceOperator,
        *,
        interrupt: Callable[[], None],
        new_topic: Callable[[str], None],
        acknowledge: Acknowledge | None = None,
        tolerant: bool = False,
    ) -> None:
        # Without acknowledge, successes need no callback into Python: flush() tells when all have arrived.
        reports = {"delivery.report.only.error": acknowledge is None, "on_delivery": self._on_delivery}
        self.client = self._producer = producer({**config, **reports})
        self._converters = converters
        self._offsets = offsets
        self._tolerance = tolerance
        self._interrupt = interrupt
        self._new_topic = new_topic
        self._acknowledge = acknowledge
        self._failed_sends = FailedSends(tolerance, self._send_alone, type(self)) if tolerant else None
        self._topics: set[str] = set()
        self._encoders: dict[tuple[str, Schema | None, Schema | None], tuple[Encode, Encode]] = {}
        self.failure: ConnectError | None = None

    @property
    def failed(self) -> bool:
        """Whether a record was lost; then no offset may be stored any more. ``failure`` says how."""
        return self.failure is not None

    def send(self, batch: SubmittedRecords) -> None:
        """Produce a batch's records in order. Waits while the producer's buffer is full.

        Raises ConnectError for a record that cannot be converted or sent; those before it are on their way, and the offsets
        of the sources before its own remembered.
        """
        if self._acknowledge is None:
            self._send_all(batch)
        else:
            self._send_acknowledged(batch, self._acknowledge)
        self._offsets.remember_all(batch.sources)
        self.serve()

    def _send_all(self, batch: SubmittedRecords) -> None:
        topic: str | None = None
        key_schema = value_schema = None
        produce = self._producer.produce
        quick = self._failed_sends is None
        done = 0
        try:
            for done, record in enumerate(batch.records):  # noqa: B007
                if record.value_schema is not value_schema or record.topic is not topic or record.key_schema is not key_schema:
                    topic, key_schema, value_schema = record.topic, record.key_schema, record.value_schema
                    self._use(topic)
                    encode_key, encode_value = self._encoders_for(topic, key_schema, value_schema)
                if not record.headers and record.kafka_partition is None and record.timestamp is None:
                    try:
                        if quick:
                            produce(topic, encode_value(record.value), encode_key(record.key))
                        else:
                            produce(topic, encode_value(record.value), encode_key(record.key), **self._report_of(record, None))
                        continue
                    except Exception:  # noqa: BLE001, S110 (whatever it was, the careful way finds out and deals with it)
                        pass
                self._send_carefully(record, None)
        except BaseException:
            self._offsets.remember_all(batch.sources_before(done))
            raise

    def _send_acknowledged(self, batch: SubmittedRecords, acknowledge: Acknowledge) -> None:
        """The same where the task wants to hear of each of its records: of a dropped one at once."""
        done = 0
        try:
            for source, records in batch.by_source():
                parts = _Parts(source, len(records), acknowledge)
                if not records:
                    acknowledge(source, -1, -1)
                for record in records:
                    self._send_carefully(record, parts)
                done += 1
        except BaseException:
            self._offsets.remember_all(batch.sources[:done])
            raise

    def serve(self) -> None:
        """Take note of what Kafka has answered by now. Raises ConnectError if a record was lost."""
        with self._errors():
            self._producer.poll(0)
        self._raise_failure()
        if self._failed_sends:
            self._failed_sends.settle(self._interrupt)

    def flush(self, seconds: float, check: Callable[[], None]) -> bool:
        """Wait until everything sent is acknowledged; False if that takes longer than ``seconds``.

        ``check`` is called now and then and raises to give up. Raises ConnectError if a record was lost.
        """
        deadline = time.monotonic() + seconds
        while True:
            with self._errors():
                left = self._producer.flush(max(0.0, min(deadline - time.monotonic(), _SLICE_SECONDS)))
            self._raise_failure()
            if self._failed_sends and not left:
                self._failed_sends.settle(functools.partial(_check_until, deadline, check))
                left = len(self._failed_sends)
            if not left or time.monotonic() >= deadline:
                return not left
            check()

    def explained(self, error: ConnectError) -> ConnectError:
        """Return an error of the producer or its transaction with what is to be done about it."""
        return producer_error(error, self._topics)

    def discard(self) -> None:
        """Forget what has not been acknowledged, without waiting."""
        self._producer.purge(blocking=False)

    def _encoders_for(self, topic: str, key_schema: Schema | None, value_schema: Schema | None) -> tuple[Encode, Encode]:
        known = self._encoders.get((topic, key_schema, value_schema))
        if known is not None:
            return known
        encoders = self._converters.key.encoder(topic, key_schema), self._converters.value.encoder(topic, value_schema)
        self._encoders[topic, key_schema, value_schema] = encoders
        return encoders

    def _use(self, topic: str) -> None:
        if topic not in self._topics:
            self._new_topic(topic)
            self._topics.add(topic)

    def _send_carefully(self, record: SourceRecord, parts: _Parts | None) -> None:
        """Send one record of any kind, waiting for room, with every failure told apart."""
        self._use(record.topic)
        converted = self._converted(record)
        if converted is None:
            if parts is not None:
                parts.acknowledged(-1, -1)
            return
        key, value, options = converted
        try:
            with mapped_errors(f"send to topic {record.topic}"):
                self._produce_when_there_is_room(record.topic, value, key, {**options, **self._report_of(record, parts)})
        except KafkaClientError as error:
            if self._failed_sends is None or not is_record_error(error):
                raise record_error(error, key, value) from error
            self._failed_sends.leave_out(record, parts, error)

    def _send_alone(self, record: SourceRecord, awaited: Awaited | None, check: Callable[[], None]) -> ConnectError | None:
        converted = self._converted(record)
        if converted is None:  # left out already
            if awaited is not None:
                awaited.acknowledged(-1, -1)
            return None
        key, value, options = converted
        answer: list[ConnectError | None] = []

        def delivered(error: Any, message: Any) -> None:
            answer.append(None if error is None else to_connect_error(error, f"write to topic {record.topic}"))
            if error is None and awaited is not None:
                awaited.acknowledged(message.partition(), message.offset())

        self._wait_for_all(check)
        with mapped_errors(f"send to topic {record.topic}"):
            self._produce_when_there_is_room(record.topic, value, key, {**options, "on_delivery": delivered})
        self._wait_for_all(check)
        return answer[0] if answer else None  # success may go unsaid, see delivery.report.only.error

    def _wait_for_all(self, check: Callable[[], None]) -> None:
        while self._producer.flush(_SLICE_SECONDS):
            self._raise_failure()
            check()

    def _report_of(self, record: SourceRecord, parts: _Parts | None) -> dict[str, Any]:
        """Return the option that tells of one record's delivery, where that is wanted."""
        if parts is None and self._failed_sends is None:
            return {}
        return {"on_delivery": functools.partial(self._on_own_delivery, record, parts)}

    def _converted(self, record: SourceRecord) -> _Converted | None:
        """Return key, value and options for ``produce``; None for a record that cannot be converted and may be left out."""
        stage = Stage.KEY_CONVERTER
        by: type = type(self._converters.key)

        def convert() -> _Converted:
            nonlocal stage, by
            stage, by = Stage.KEY_CONVERTER, type(self._converters.key)
            encode_key, encode_value = self._encoders_for(record.topic, record.key_schema, record.value_schema)
            key = encode_key(record.key)
            stage, by = Stage.VALUE_CONVERTER, type(self._converters.value)
            value = encode_value(record.value)
            stage, by = Stage.HEADER_CONVERTER, type(self._converters.header)
            return key, value, self._options(record)

        try:
            return convert()
        except Exception as error:  # noqa: BLE001 (a converter may raise anything)
            what = f"{describe_source_record(record)} cannot be converted"
            return self._tolerance.recover(convert, what, error, ProcessingContext(stage, by, record))

    def _options(self, record: SourceRecord) -> dict[str, Any]:
        """Return what ``produce`` takes beside topic, value and key."""
        options: dict[str, Any] = {}
        if record.headers:
            options["headers"] = self._converters.headers_to_kafka(record.topic, record.headers)
        if record.kafka_partition is not None:
            options["partition"] = record.kafka_partition
        if record.timestamp is not None:
            options["timestamp"] = record.timestamp
        return options

    def _produce_when_there_is_room(self, topic: str, value: bytes | None, key: bytes | None, options: Mapping[str, Any]) -> None:
        while True:
            try:
                self._producer.produce(topic, value, key, **options)
                return
            except BufferError:
                with self._errors():
                    self._producer.poll(_SLICE_SECONDS)
                self._raise_failure()
                self._interrupt()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Serve the producer, which raises what ends it for good."""
        try:
            with mapped_errors("send records"):
                yield
        except KafkaClientError as error:
            self.failure = self.failure or self.explained(error)
            raise self.failure from error

    def _on_delivery(self, error: Any, message: Any) -> None:
        if error is not None and self.failure is None and error.name() not in _PURGED:  # those were dropped on purpose
            cause = to_connect_error(error, f"write to topic {message.topic()}")
            self.failure = record_error(cause, message.key(), message.value())
            self.failure.__cause__ = cause

    def _on_own_delivery(self, record: SourceRecord, parts: _Parts | None, error: Any, message: Any) -> None:
        if error is None:
            if parts is not None:
                parts.acknowledged(message.partition(), message.offset())
        elif self._failed_sends is None or not self._failed_sends.take(
            record, parts, to_connect_error(error, f"write to topic {record.topic}")
        ):
            self._on_delivery(error, message)

    def _raise_failure(self) -> None:
        if self.failure is not None:
            raise self.failure


class _Parts:
    """The records that one of the task's own became: it is acknowledged with the last of them."""

    __slots__ = ("_acknowledge", "_left", "_source")

    def __init__(self, source: SourceRecord, left: int, acknowledge: Acknowledge) -> None:
        self._source = source
        self._left = left
        self._acknowledge = acknowledge

    def acknowledged(self, partition: int, offset: int) -> None:
        self._left -= 1
        if not self._left:
            self._acknowledge(self._source, partition, offset)


def _check_until(deadline: float, check: Callable[[], None]) -> None:
    check()
    if time.monotonic() >= deadline:
        raise Interrupted
