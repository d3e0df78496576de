"""Writes records to internal topics and waits for them: each write is in Kafka when it returns."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from sluiceway.api.task import TopicPartition as Place
from sluiceway.config.worker import WorkerConfig
from sluiceway.kafka.clients import internal_producer_config, producer
from sluiceway.kafka.errors import to_connect_error

Write = tuple[str, "bytes | None", "bytes | None"]
"""Topic, key, value; a value of None is a tombstone."""


class DeliveryReports:
    """Collects what became of one batch of records; ``failure`` is the first error."""

    def __init__(self) -> None:
        self.ends: dict[Place, int] = {}
        self.failure: KafkaError | None = None
        self.pending = 0

    def send(self, client: Producer, records: Sequence[Write]) -> None:
        """Hand records to the producer in order; raises KafkaException."""
        for topic, key, value in records:
            client.produce(topic, key=key, value=value, on_delivery=self._delivered)
            self.pending += 1

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        self.pending -= 1
        if error is not None:
            self.failure = self.failure or error
        else:
            place = Place(message.topic(), message.partition())
            self.ends[place] = max(self.ends.get(place, 0), message.offset() + 1)


class TopicWriter:
    """Writes without transactions, acknowledged by all in-sync replicas. Thread-safe. Driver, executor or API server."""

    def __init__(self, worker: WorkerConfig, client_id: str) -> None:
        self._config = internal_producer_config(worker, client_id)
        self._producer = producer(self._config)
        self._lock = threading.Lock()

    def write(self, records: Sequence[Write]) -> dict[Place, int]:
        """Write records in order; return, by partition, the offset after the last one.

        Raises:
            KafkaClientError: a record was not acknowledged within 30 s; it may or may not have been written.
        """
        deliveries = DeliveryReports()
        with self._lock:
            try:
                deliveries.send(self._producer, records)
                while deliveries.pending:
                    self._producer.flush(1.0)
            except KafkaException as exception:
                deliveries.failure = exception.args[0]
            if deliveries.failure is None:
                return deliveries.ends
            if deliveries.failure.fatal():  # the client refuses everything from now on; a new one does not
                self._producer = producer(self._config)
        raise to_connect_error(deliveries.failure, f"write to {', '.join(sorted({topic for topic, _, _ in records}))}")

    def close(self) -> None:
        """Close the producer; nothing can be pending, since each write waits."""
        with suppress(KafkaException):
            self._producer.flush(0)
