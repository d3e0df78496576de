"""Writes records to internal topics and waits until Kafka has acknowledged them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, cast

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from sluiceway.api.task import TopicPartition
from sluiceway.config.worker import WorkerConfig
from sluiceway.kafka.clients import ConsumedMessage, internal_producer_config, producer
from sluiceway.kafka.errors import to_connect_error

ProducerRecord = tuple[str, "bytes | None", "bytes | None"]
"""A record to write: topic, key, value. A value of None is a tombstone."""

Headers = Sequence[tuple[str, bytes]]
"""Record headers: names and values."""

_SLICE_SECONDS = 0.1


def produce(client: Producer, topic: str, **record: Any) -> None:
    """Pass a record to a producer, waiting while its buffer is full: at most until what is in it times out."""
    while True:
        try:
            client.produce(topic, **record)
            return
        except BufferError:
            client.poll(_SLICE_SECONDS)


class DeliveryReports:
    """Collects the delivery reports of one batch of records.

    ``ends`` is the offset after the last acknowledged record by partition, ``failure`` the first error, and ``pending`` the
    number of records without a report.
    """

    def __init__(self) -> None:
        self.ends: dict[TopicPartition, int] = {}
        self.failure: KafkaError | None = None
        self.pending = 0

    def send(self, client: Producer, records: Sequence[ProducerRecord], headers: Headers = ()) -> None:
        """Pass records to the producer in order, each with these headers. Raises KafkaException."""
        for topic, key, value in records:
            produce(client, topic, key=key, value=value, headers=[*headers], on_delivery=self._delivered)
            self.pending += 1

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        self.pending -= 1
        if error is not None:
            self.failure = self.failure or error
        else:
            written = cast(ConsumedMessage, message)
            partition = TopicPartition(written.topic(), written.partition())
            self.ends[partition] = max(self.ends.get(partition, 0), written.offset() + 1)


class TopicWriter:
    """Writes without transactions, acknowledged by all in-sync replicas. Runs in any process. Thread-safe."""

    def __init__(self, worker: WorkerConfig, client_id: str) -> None:
        self._config = internal_producer_config(worker, client_id)
        self._producer = producer(self._config)
        self._lock = threading.Lock()

    def write(self, records: Sequence[ProducerRecord], headers: Headers = ()) -> dict[TopicPartition, int]:
        """Write records in order, each with these headers, and return the offset after the last one, by partition.

        Raises:
            KafkaClientError: a record was not acknowledged within 30 s; it may or may not have been written.
        """
        deliveries = DeliveryReports()
        with self._lock:
            try:
                deliveries.send(self._producer, records, headers)
                while deliveries.pending:
                    self._producer.flush(1.0)
            except KafkaException as exception:
                deliveries.failure = exception.args[0]
            if deliveries.failure is None:
                return deliveries.ends
            if deliveries.failure.fatal():  # the client fails every later call too; a new one works
                self._producer = producer(self._config)
        raise to_connect_error(deliveries.failure, f"write to {', '.join(sorted({topic for topic, _, _ in records}))}")

    def close(self) -> None:
        """Close the producer. No record is pending, because ``write`` waits for all of them."""
        with suppress(KafkaException):
            self._producer.flush(0)
