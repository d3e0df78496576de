"""Converts and produces a source task's records; the barrier that says they have all arrived."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sluiceway.api import SourceRecord, SourceTask
from sluiceway.data import Schema
from sluiceway.errors import ConnectError, KafkaClientError
from sluiceway.kafka.clients import Message, producer
from sluiceway.kafka.errors import mapped_errors, to_connect_error
from sluiceway.runtime.converters import Converters
from sluiceway.runtime.offsets import OffsetWriter
from sluiceway.runtime.tolerance import Tolerance

_SLICE_SECONDS = 0.1
_SEND_FAILED = "Unrecoverable exception from producer send callback"

Encode = Callable[[Any], bytes | None]


class RecordSender:
    """Hands records to a producer and remembers their source offsets. For one thread.

    ``interrupt`` is called while the sender waits for room in the producer's buffer; it raises to give up.
    ``new_topic`` is called with each topic that is written to for the first time.
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
        acknowledge: Callable[[SourceRecord, int, int], None] | None = None,
    ) -> None:
        """``acknowledge``, if given, is called with each record acknowledged, its partition and offset: it costs speed."""
        # Without it, successes need no callback into Python: flush() tells when all have arrived.
        reports = {"delivery.report.only.error": acknowledge is None, "on_delivery": self._report}
        self._producer = producer({**config, **reports})
        self._converters = converters
        self._offsets = offsets
        self._tolerance = tolerance
        self._interrupt = interrupt
        self._new_topic = new_topic
        self._acknowledge = acknowledge
        self._topics: set[str] = set()
        self._encoders: dict[tuple[str, Schema | None, Schema | None], tuple[Encode, Encode]] = {}
        self._failure: ConnectError | None = None

    @property
    def failed(self) -> bool:
        """Whether a record was lost; then no offset may be stored any more."""
        return self._failure is not None

    def send(self, records: Sequence[SourceRecord]) -> None:
        """Produce records in order. Waits while the producer's buffer is full.

        Raises ConnectError for a record that cannot be converted or sent; those before it are on their way, and their
        offsets remembered.
        """
        topic: str | None = None
        key_schema = value_schema = partition = last = None
        produce, remember = self._producer.produce, self._offsets.remember
        try:
            for record in records:
                if record.value_schema is not value_schema or record.topic is not topic or record.key_schema is not key_schema:
                    topic, key_schema, value_schema = record.topic, record.key_schema, record.value_schema
                    encode_key, encode_value = self._encoders_for(topic, key_schema, value_schema)
                try:
                    key = encode_key(record.key)
                    value = encode_value(record.value)
                    plain = not record.headers and record.timestamp is None and record.kafka_partition is None
                    options = {} if plain else self._options(record)
                except Exception as error:  # noqa: BLE001 (a converter may raise anything; the tolerance decides)
                    self._skip(record, error)
                else:
                    try:
                        if plain and self._acknowledge is None:
                            produce(topic, value, key)
                        else:
                            self._produce(record, value, key, options)
                    except BufferError:
                        self._produce_when_there_is_room(record, value, key, options)
                if record.source_partition is not partition:
                    if last is not None:
                        remember(last.source_partition, last.source_offset)
                    partition = record.source_partition
                last = record
        finally:
            if last is not None:
                remember(last.source_partition, last.source_offset)
        self._producer.poll(0)
        self._raise_failure()
