"""Converts and produces a source task's records; the barrier that says they have all arrived."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping
from typing import Any

from sluiceway.api import SourceRecord
from sluiceway.data import Schema
from sluiceway.errors import ConnectError, KafkaClientError
from sluiceway.kafka.clients import producer
from sluiceway.kafka.errors import mapped_errors, to_connect_error
from sluiceway.runtime.converters import Converters
from sluiceway.runtime.failures import Failure, Stage
from sluiceway.runtime.offsets import OffsetWriter
from sluiceway.runtime.outgoing import Outgoing
from sluiceway.runtime.tolerance import Tolerance

_SLICE_SECONDS = 0.1
_PURGED = ("_PURGE_QUEUE", "_PURGE_INFLIGHT")
_SEND_FAILED = "Unrecoverable exception from producer send callback"

Encode = Callable[[Any], bytes | None]
_Converted = tuple["bytes | None", "bytes | None", dict[str, Any]]
Acknowledge = Callable[[SourceRecord, int, int], None]


def place_of(record: SourceRecord) -> str:
    """Return what tells a source's record from others, for messages."""
    return f"a record for topic {record.topic} with source offset {record.source_offset}"


class RecordSender:
    """Hands records to a producer and remembers their source offsets. For one thread, on an executor.

    ``interrupt`` is called while the sender waits for room in the producer's buffer; it raises to give up.
    ``new_topic`` is called with each topic before the first record to it; what it raises ends the sending.
    ``acknowledge``, if given, is called with each of the task's own records once Kafka has all that became of it, with
    partition and offset (-1 for one that was dropped or skipped): that costs speed.
    """

    def __init__(
        self,
        config: Mapping[str, str],
        converters: Converters,
        offsets: OffsetWriter,
        tolerance: Tolerance,
        *,
        interrupt: Callable[[], None],
        new_topic: Callable[[str], None],
        acknowledge: Acknowledge | None = None,
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
        self._topics: set[str] = set()
        self._encoders: dict[tuple[str, Schema | None, Schema | None], tuple[Encode, Encode]] = {}
        self.failure: ConnectError | None = None

    @property
    def failed(self) -> bool:
        """Whether a record was lost; then no offset may be stored any more. ``failure`` says how."""
        return self.failure is not None

    def send(self, batch: Outgoing) -> None:
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

    def _send_all(self, batch: Outgoing) -> None:
        topic: str | None = None
        key_schema = value_schema = None
        produce = self._producer.produce
        done = 0
        try:
            for done, record in enumerate(batch.records):  # noqa: B007
                if record.value_schema is not value_schema or record.topic is not topic or record.key_schema is not key_schema:
                    topic, key_schema, value_schema = record.topic, record.key_schema, record.value_schema
                    self._use(topic)
                    encode_key, encode_value = self._encoders_for(topic, key_schema, value_schema)
                if not record.headers and record.kafka_partition is None and record.timestamp is None:
                    try:
                        produce(topic, encode_value(record.value), encode_key(record.key))
                        continue
                    except Exception:  # noqa: BLE001, S110 (whatever it was, the careful way finds out and deals with it)
                        pass
                self._send_carefully(record, None)
        except BaseException:
            self._offsets.remember_all(batch.sources_before(done))
            raise

    def _send_acknowledged(self, batch: Outgoing, acknowledge: Acknowledge) -> None:
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
        self._producer.poll(0)
        self._raise_failure()

    def flush(self, seconds: float, check: Callable[[], None]) -> bool:
        """Wait until everything sent is acknowledged; False if that takes longer than ``seconds``.

        ``check`` is called now and then and raises to give up. Raises ConnectError if a record was lost.
        """
        deadline = time.monotonic() + seconds
        while True:
            left = self._producer.flush(max(0.0, min(deadline - time.monotonic(), _SLICE_SECONDS)))
            self._raise_failure()
            if not left or time.monotonic() >= deadline:
                return not left
            check()

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
        if parts is not None:
            options["on_delivery"] = functools.partial(self._on_own_delivery, parts)
        try:
            with mapped_errors(f"send to topic {record.topic}"):
                self._produce_when_there_is_room(record.topic, value, key, options)
        except KafkaClientError as error:
            raise ConnectError(f"{_SEND_FAILED}: {_explained(error, key, value)}") from error

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
            what = f"{place_of(record)} cannot be converted"
            return self._tolerance.recover(convert, what, error, Failure(stage, by, record))

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
                self._producer.poll(_SLICE_SECONDS)
                self._raise_failure()
                self._interrupt()

    def _on_delivery(self, error: Any, message: Any) -> None:
        if error is not None and self.failure is None and error.name() not in _PURGED:  # those were dropped on purpose
            cause = to_connect_error(error, f"write to topic {message.topic()}")
            self.failure = ConnectError(f"{_SEND_FAILED}: {cause}")
            self.failure.__cause__ = cause

    def _on_own_delivery(self, parts: _Parts, error: Any, message: Any) -> None:
        self._on_delivery(error, message)
        if error is None:
            parts.acknowledged(message.partition(), message.offset())

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


def _explained(error: KafkaClientError, key: bytes | None, value: bytes | None) -> str:
    if error.code != "MSG_SIZE_TOO_LARGE":
        return str(error)
    size = len(key or b"") + len(value or b"")
    return f"{error} The record has {size} bytes; raise producer.override.max.request.size, and the topic's max.message.bytes."
