"""Converts a source task's records, produces them to Kafka and tracks their delivery."""

from __future__ import annotations

import collections
import functools
import itertools
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from sluiceway.api import EncodedRecords, SourceRecord
from sluiceway.errors import ConnectError, FencedError, KafkaClientError
from sluiceway.java_plugins.acknowledgements import SentRecords
from sluiceway.kafka.clients import Producer, producer
from sluiceway.kafka.errors import mapped_errors, to_connect_error
from sluiceway.runtime.errors.retry_with_tolerance import RetryWithToleranceOperator
from sluiceway.runtime.interrupts import Interrupted
from sluiceway.runtime.source.failed_sends import FailedSends, is_record_error
from sluiceway.runtime.source.offset_storage import OffsetStorageWriter
from sluiceway.runtime.source.packed_sender import PackedSender, taken
from sluiceway.runtime.source.record_encoder import RecordEncoder
from sluiceway.runtime.source.submitted_records import (
    Acknowledge,
    Submitted,
    SubmittedColumns,
    SubmittedEncoded,
    SubmittedPacked,
    SubmittedRecord,
    SubmittedRecords,
    partition_and_offset,
    skipped,
)
from sluiceway.runtime.task_converters import Converters

_SLICE_SECONDS = 0.1
_SEND_SECONDS = 0.001  # the shortest that librdkafka waits
_LINGER = ("linger.ms", "queue.buffering.max.ms")
_ANY_PARTITION, _NOW = -1, 0
"""The defaults of ``Producer.produce`` for a partition and a timestamp."""
_PURGED = ("_PURGE_QUEUE", "_PURGE_INFLIGHT")


class RecordSender:
    """Produces one task's records and collects their source offsets. Runs on an executor. Not thread-safe.

    ``interrupt`` is called while the producer's buffer is full, and raises to end the wait.
    ``new_topic`` is called with each topic before its first record; what it raises ends ``send``.
    ``acknowledge`` is called with each of the task's records once Kafka has all records made from it, with partition and
    offset, or -1 for both if it was filtered or skipped. It costs throughput, so pass None if the task does not need it.
    ``on_sent`` is called with the number of records of each batch after it has been produced; ``sent`` is their sum.
    ``tolerant`` skips records that Kafka rejects, as the ``errors.*`` keys say. A transaction cannot skip records.
    ``wrap`` returns the client that produces, which may add to records.
    ``submit`` is called with what acknowledges a part of a Java task's batch, instead of ``acknowledge``. It releases that once
    the task may learn what Kafka has.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        converters: Converters,
        offsets: OffsetStorageWriter,
        tolerance: RetryWithToleranceOperator,
        *,
        interrupt: Callable[[], None],
        new_topic: Callable[[str], None],
        acknowledge: Acknowledge | None = None,
        on_sent: Callable[[int], None] = lambda _records: None,
        tolerant: bool = False,
        submit: Callable[[SentRecords], None] = SentRecords.release,
        wrap: Callable[[Producer], Producer] = lambda client: client,
    ) -> None:
        # Without acknowledge, successes need no callback into Python: flush() tells when all records have arrived.
        reports = {"delivery.report.only.error": acknowledge is None, "on_delivery": self._on_delivery}
        self.client = producer({**config, **reports})
        self._producer = wrap(self.client)
        self._converters = converters
        self._offsets = offsets
        self._tolerance = tolerance
        self._interrupt = interrupt
        self._new_topic = new_topic
        self._lingers = not any(each in config for each in _LINGER)
        self._acknowledge = acknowledge
        self._on_sent = on_sent
        self.sent = 0
        self._failed_sends = FailedSends(tolerance, self._send_alone, type(self)) if tolerant else None
        self._packed = PackedSender(
            self._producer.produce,
            self._use,
            self._produce_one,
            self._on_record_delivery,
            self._failed_sends,
            submit,
            offsets.add,
        )
        self._topics: set[str] = set()
        self._encoder = RecordEncoder(converters, tolerance)
        self.failure: ConnectError | None = None

    @property
    def takes_columns(self) -> bool:
        """True if ``send`` accepts columns."""
        return self._acknowledge is None and self._failed_sends is None

    @property
    def acknowledges(self) -> bool:
        """True if the task is told of each record that Kafka has."""
        return self._acknowledge is not None

    @property
    def failed(self) -> bool:
        """True if a record was lost, so that no offset may be stored any more. ``failure`` is the error."""
        return self.failure is not None

    def send(self, batch: Submitted) -> None:
        """Produce a batch's records in order, waiting while the producer's buffer is full.

        Raises ConnectError for a record that cannot be converted or sent. The records before it have been produced, and
        the offsets of the sources before its own collected.
        """
        if isinstance(batch, SubmittedPacked):
            self._packed.send(batch)
        elif isinstance(batch, SubmittedColumns):
            self._send_columns(batch)
            for partition, offset in batch.source.more_offsets:
                self._offsets.add(partition, offset)
            self._offsets.add(batch.source.source_partition, batch.source.source_offset)
        elif isinstance(batch, SubmittedEncoded):
            self._send_encoded(batch.source)
            self._offsets.add(batch.source.source_partition, batch.source.source_offset)
        else:
            self._converters.encode_ahead(batch.records)
            if self._acknowledge is None:
                self._send_all(batch)
            else:
                self._send_acknowledged(batch, self._acknowledge)
            self._offsets.add_all(batch.sources)
        self.poll_deliveries()
        self.sent += batch.size
        self._on_sent(batch.size)

    def _send_columns(self, batch: SubmittedColumns) -> None:
        topic, values = batch.topic, iter(batch.values)
        keys = itertools.repeat(None) if batch.keys is None else batch.keys
        try:
            self._use(topic)
            if batch.keys is None and batch.partition is None and batch.timestamps is None:
                self._send_values(topic, batch.values, values)
                return
            produce = self._producer.produce
            options: dict[str, Any] = {} if batch.partition is None else {"partition": batch.partition}
            for value, key, timestamp in zip(values, keys, batch.timestamps or itertools.repeat(None)):  # noqa: B905
                timed = options if timestamp is None else {**options, "timestamp": timestamp}
                try:
                    produce(topic, value, key, **timed)
                except Exception:  # noqa: BLE001 (_produce_one repeats it and handles the error)
                    self._produce_one(topic, value, key, timed)
        except BaseException:
            self._offsets.add_all(batch.sources_before(max(0, taken(batch.values, values) - 1)))
            raise

    def _send_encoded(self, records: EncodedRecords) -> None:
        """Produce encoded records, without a loop in Python. After a failure, none of their offsets is stored."""
        topic = records.topic
        self._use(topic)
        options: dict[str, Any] = {}
        # Arguments by position: by keyword, each call would take a fifth longer.
        others: list[Iterator[Any]] = []
        if records.headers:
            options["headers"] = self._encoder.headers_of(topic, records.headers)
            others = [itertools.repeat(each) for each in (_ANY_PARTITION, None, None, _NOW, options["headers"])]
        values, keys = iter(records.values), iter(records.keys)
        while True:
            try:
                collections.deque(map(self._producer.produce, itertools.repeat(topic), values, keys, *others), maxlen=0)
                return
            except Exception:  # noqa: BLE001 (_produce_one repeats it and handles the error)
                index = taken(records.values, values) - 1
                self._produce_one(topic, records.values[index], records.keys[index], options)

    def _send_values(self, topic: str, values: Sequence[bytes | None], left: Iterator[bytes | None]) -> None:
        """Produce records that only have values; ``left`` iterates over these. A loop in Python would take a tenth longer."""
        topics = itertools.repeat(topic)
        while True:
            try:
                collections.deque(map(self._producer.produce, topics, left), maxlen=0)
                return
            except Exception:  # noqa: BLE001 (_produce_one repeats it and handles the error)
                self._produce_one(topic, values[taken(values, left) - 1], None, {})

    def _send_all(self, batch: SubmittedRecords) -> None:
        topic: str | None = None
        key_schema = value_schema = None
        produce = self._producer.produce
        no_report = self._failed_sends is None
        done = 0
        try:
            for done, record in enumerate(batch.records):  # noqa: B007
                if record.value_schema is not value_schema or record.topic is not topic or record.key_schema is not key_schema:
                    topic, key_schema, value_schema = record.topic, record.key_schema, record.value_schema
                    self._use(topic)
                    encode_key, encode_value = self._encoder.encoders_for(topic, key_schema, value_schema)
                if no_report and record.kafka_partition is None and record.timestamp is None and not record.headers:
                    try:
                        produce(topic, encode_value(record.value), encode_key(record.key))
                        continue
                    except Exception:  # noqa: BLE001, S110 (_send_one repeats it and handles the error)
                        pass
                    self._send_one(record, None)
                else:
                    self._send(record, None)
        except BaseException:
            self._offsets.add_all(batch.sources_before(done))
            raise

    def _send_acknowledged(self, batch: SubmittedRecords, acknowledge: Acknowledge) -> None:
        """Produce records that the task wants acknowledged. Filtered ones are acknowledged at once."""
        done = 0
        try:
            for source, records in batch.by_source():
                submitted = SubmittedRecord(source, len(records), acknowledge)
                if not records:
                    acknowledge(source, -1, -1)
                for record in records:
                    self._use(record.topic)
                    self._send(record, submitted)
                done += 1
        except BaseException:
            self._offsets.add_all(batch.sources[:done])
            raise

    def poll_deliveries(self) -> None:
        """Handle Kafka's delivery reports without blocking. Raises ConnectError if a record was lost."""
        with self._recorded_errors():
            self._producer.poll(0)
        self._raise_failure()
        if self._failed_sends:
            self._failed_sends.resend(self._interrupt)

    def await_acknowledgement(self, seconds: float) -> bool:
        """Wait for a record's acknowledgement, for which the task may wait. Return False if it wants none or none is due.

        Waits at most so long. Raises ConnectError if a record was lost.
        """
        if self._acknowledge is None or not len(self.client):
            return False
        with self._recorded_errors():
            self._producer.poll(seconds)
        self._raise_failure()
        return True

    def send_now(self) -> None:
        """Send what the client holds back until there are more records, because there are none; unless the config says how long.

        Waits for the acknowledgement, at most a millisecond. Never raises: the next call that does raises the error.
        """
        if self._lingers and len(self.client):
            with suppress(ConnectError), self._recorded_errors():
                self._producer.flush(_SEND_SECONDS)

    def await_failure(self, seconds: float) -> None:
        """Handle delivery reports until one of them is a ``failure``, at most so long. Never raises."""
        deadline = time.monotonic() + seconds
        with suppress(ConnectError):
            while self.failure is None and time.monotonic() < deadline:
                with self._recorded_errors():
                    self._producer.poll(_SLICE_SECONDS)

    def flush(self, seconds: float, check: Callable[[], None]) -> bool:
        """Wait until Kafka has acknowledged all records; return False after ``seconds``.

        ``check`` is called while waiting and may raise to end it. Raises ConnectError if a record was lost.
        """
        deadline = time.monotonic() + seconds
        while True:
            with self._recorded_errors():
                left = self._producer.flush(max(0.0, min(deadline - time.monotonic(), _SLICE_SECONDS)))
            self._raise_failure()
            if self._failed_sends and not left:
                self._failed_sends.resend(functools.partial(_check_until, deadline, check))
                left = len(self._failed_sends)
            if not left or time.monotonic() >= deadline:
                return not left
            check()

    def with_advice(self, error: ConnectError) -> ConnectError:
        """Return an error of the producer or its transaction with advice, if there is any."""
        return producer_error(error, self._topics)

    def discard(self) -> None:
        """Drop records that are not acknowledged, without waiting."""
        self._producer.purge(blocking=False)

    def _use(self, topic: str) -> None:
        if topic not in self._topics:
            self._new_topic(topic)
            self._topics.add(topic)

    def _send_one(self, record: SourceRecord, submitted: SubmittedRecord | None) -> None:
        """Produce one record of any kind, waiting for space in the buffer, and handle every kind of failure."""
        self._use(record.topic)
        converted = self._encoder.convert(record)
        if converted is None:
            skipped(submitted)
            return
        key, value, options = converted
        try:
            with mapped_errors(f"send to topic {record.topic}"):
                self._produce(record.topic, value, key, {**options, **self._report_option(record, submitted)})
        except KafkaClientError as error:
            if self._failed_sends is None or not is_record_error(error):
                raise record_error(error, key, value, record) from error
            self._failed_sends.skip(record, submitted, error)

    def _produce_one(self, topic: str, value: bytes | None, key: bytes | None, options: Mapping[str, Any]) -> None:
        try:
            with mapped_errors(f"send to topic {topic}"):
                self._produce(topic, value, key, options)
        except KafkaClientError as error:
            raise record_error(error, key, value) from error

    def _send_alone(
        self, record: SourceRecord, submitted: SubmittedRecord | None, check: Callable[[], None]
    ) -> ConnectError | None:
        converted = self._encoder.convert(record)
        if converted is None:
            skipped(submitted)
            return None
        key, value, options = converted
        answer: list[ConnectError | None] = []

        def on_delivery(error: Any, message: Any) -> None:
            answer.append(None if error is None else to_connect_error(error, f"write to topic {record.topic}"))
            if error is None and submitted is not None:
                submitted.acknowledged(*partition_and_offset(message))

        self._wait_for_all(check)
        with mapped_errors(f"send to topic {record.topic}"):
            self._produce(record.topic, value, key, {**options, "on_delivery": on_delivery})
        self._wait_for_all(check)
        return answer[0] if answer else None  # with delivery.report.only.error, a success is not reported

    def _wait_for_all(self, check: Callable[[], None]) -> None:
        while self._producer.flush(_SLICE_SECONDS):
            self._raise_failure()
            check()

    def _send(self, record: SourceRecord, submitted: SubmittedRecord | None) -> None:
        """Produce one record of any kind whose topic is in use, the fast way if that can be done."""
        try:
            self._produce_record(record, submitted)
            return
        except Exception:  # noqa: BLE001, S110 (_send_one repeats it and handles the error)
            pass
        self._send_one(record, submitted)

    def _produce_record(self, record: SourceRecord, submitted: SubmittedRecord | None) -> None:
        """Produce a record without waiting. Whatever it raises, ``_send_one`` handles: nothing was produced then."""
        topic, headers, partition, timestamp = record.topic, record.headers, record.kafka_partition, record.timestamp
        reported = submitted is not None or self._failed_sends is not None
        encode_key, encode_value = self._encoder.encoders_of(record)
        # By position, because each call would take a fifth longer by keyword. The fifth argument is an alias of the sixth.
        self._producer.produce(
            topic,
            encode_value(record.value),
            encode_key(record.key),
            _ANY_PARTITION if partition is None else partition,
            functools.partial(self._on_record_delivery, record, submitted) if reported else None,
            None,
            _NOW if timestamp is None else timestamp,
            self._encoder.headers_of(topic, headers) if headers else None,
        )

    def _report_option(self, record: SourceRecord, submitted: SubmittedRecord | None) -> dict[str, Any]:
        """Return the ``produce`` option for a record's own delivery report, if it needs one."""
        if submitted is None and self._failed_sends is None:
            return {}
        return {"on_delivery": functools.partial(self._on_record_delivery, record, submitted)}

    def _produce(self, topic: str, value: bytes | None, key: bytes | None, options: Mapping[str, Any]) -> None:
        """Hand a record to the producer, waiting while its buffer is full."""
        while True:
            try:
                self._producer.produce(topic, value, key, **options)
                return
            except BufferError:
                with self._recorded_errors():
                    self._producer.poll(_SLICE_SECONDS)
                self._raise_failure()
                self._interrupt()

    @contextmanager
    def _recorded_errors(self) -> Iterator[None]:
        """Record an error that ends the producer as ``failure``, and raise it."""
        try:
            with mapped_errors("send records"):
                yield
        except KafkaClientError as error:
            self.failure = self.failure or self.with_advice(error)
            raise self.failure from error

    def _on_delivery(self, error: Any, message: Any) -> None:
        if error is not None and self.failure is None and error.name() not in _PURGED:  # discard() purges on purpose
            cause = to_connect_error(error, f"write to topic {message.topic()}")
            self.failure = record_error(cause, message.key(), message.value())
            self.failure.__cause__ = cause

    def _on_record_delivery(self, record: SourceRecord, submitted: SubmittedRecord | None, error: Any, message: Any) -> None:
        if error is None:
            if submitted is not None:
                submitted.acknowledged(*partition_and_offset(message))
        elif self._failed_sends is None or not self._failed_sends.add(
            record, submitted, to_connect_error(error, f"write to topic {record.topic}")
        ):
            self._on_delivery(error, message)

    def _raise_failure(self) -> None:
        if self.failure is not None:
            raise self.failure


def _check_until(deadline: float, check: Callable[[], None]) -> None:
    check()
    if time.monotonic() >= deadline:
        raise Interrupted


def record_error(error: ConnectError, key: bytes | None, value: bytes | None, record: SourceRecord | None = None) -> ConnectError:
    """Return the error of a record that could not be sent, with advice. ``record`` is given if it is known."""
    code = getattr(error, "code", None)
    advice = ""
    if code == "TOPIC_AUTHORIZATION_FAILED":
        advice = " The task's principal needs WRITE on the topic; allow that, then restart the task."
    elif code == "MSG_SIZE_TOO_LARGE":
        size = len(key or b"") + len(value or b"")
        where = "" if record is None else f" of source partition {record.source_partition} with offset {record.source_offset}"
        advice = (
            f" The record{where} has {size} bytes; raise producer.override.max.request.size, and the topic's max.message.bytes."
        )
    return ConnectError(f"Unrecoverable exception from producer send callback: {error}{advice}")


def producer_error(error: ConnectError, topics: Collection[str]) -> ConnectError:
    """Return an error of the producer or its transaction, which names no topic, with the ``topics`` the task writes to."""
    code = getattr(error, "code", None)
    used = ", ".join(f"topic {topic}" for topic in sorted(topics))
    if isinstance(error, FencedError) or not used:
        return error
    if code == "CLUSTER_AUTHORIZATION_FAILED":  # WRITE on any topic would suffice, so the principal has it on none
        return ConnectError(f"{error} The task's principal needs WRITE on the topic it writes to: {used}.")
    if code == "TOPIC_AUTHORIZATION_FAILED":
        return ConnectError(
            f"{error} The task's principal needs WRITE on the topic it writes to ({used}) and on that of its offsets."
        )
    return error
