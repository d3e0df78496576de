"""Reads records from another cluster and writes small records to it. Runs on executors, one thread per object."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Mapping
from typing import cast

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as TopicPartitionOffset

from sluiceway.api.task import TopicPartition
from sluiceway.errors import ConfigError
from sluiceway.kafka.clients import CLIENT_DEFAULTS, CONSUMER_DEFAULTS, ConsumedMessage, consumer, producer, to_librdkafka
from sluiceway.kafka.errors import mapped_errors, to_connect_error

log = logging.getLogger(__name__)

_BATCH = 2000
_LOOK_SECONDS, _ANSWER_SECONDS = 10.0, 1.0
_START_OFFSETS = {"earliest": OFFSET_BEGINNING, "latest": OFFSET_END}
_READER_DEFAULTS = {**CLIENT_DEFAULTS, **CONSUMER_DEFAULTS}
_NO_COMMITS = {"enable.auto.commit": "false", "enable.auto.offset.store": "false"}


class SourcePartitionReader:
    """Reads partitions from given offsets. None starts where ``auto.offset.reset`` says, by default at the earliest record.

    Joins no consumer group and commits nothing. Retries a partition that cannot be read until it can. ``waiting`` is a task
    context's, which shows that no broker answers.
    Raises KafkaClientError for properties that librdkafka rejects, and ConfigError if an offset is None and
    ``auto.offset.reset`` is neither earliest nor latest.
    """

    def __init__(
        self,
        properties: Mapping[str, str],
        positions: Mapping[TopicPartition, int | None],
        waiting: Callable[..., None] = lambda *_: None,
    ) -> None:
        self._waiting = waiting
        self._away = False
        self._next_look = 0.0
        # librdkafka requires a group id; the group is never joined.
        config = {**_READER_DEFAULTS, "group.id": properties["client.id"], **to_librdkafka(properties), **_NO_COMMITS}
        reset = config["auto.offset.reset"]
        assignment: list[TopicPartitionOffset] = []
        for partition, offset in positions.items():
            start = _START_OFFSETS.get(reset) if offset is None else offset
            if start is None:
                why = "Partitions without a stored offset need a start: earliest or latest"
                raise ConfigError("auto.offset.reset", reset, why)
            assignment.append(TopicPartitionOffset(*partition, start))
        self._consumer: Consumer = consumer({**config, "error_cb": self._client_error})
        self._first = next(iter(assignment), None)
        with mapped_errors("read the source cluster"):
            self._consumer.assign(assignment)
        self._logged_errors: set[tuple[str | None, int | None, int]] = set()

    def poll(self, timeout: float) -> list[ConsumedMessage]:
        """Return the available records, or wait up to ``timeout`` seconds for the first one. Raises KafkaClientError."""
        with mapped_errors("read the source cluster"):
            first = self._consumer.poll(timeout)
            if first is None:
                self._look_again()
                return []
            messages = [first, *self._consumer.consume(_BATCH, 0)]
        records: list[Message] = []
        for message in messages:
            error = message.error()
            if error is None:
                records.append(message)
            else:
                self._log_error(message, error)
        if records:
            self._reachable()
        return cast("list[ConsumedMessage]", records)

    def _client_error(self, error: KafkaError) -> None:
        """Show that no broker answers. Runs in ``poll``."""
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            self._away = True
            self._waiting(f"No broker of the source cluster answers: {error.str()}", _LOOK_SECONDS)

    def _look_again(self) -> None:
        """Ask whether the brokers answer again, since a partition without new records does not show it."""
        if not self._away or self._first is None or time.monotonic() < self._next_look:
            return
        self._next_look = time.monotonic() + _LOOK_SECONDS
        with contextlib.suppress(KafkaException):
            self._consumer.get_watermark_offsets(self._first, timeout=_ANSWER_SECONDS)
            self._reachable()

    def _reachable(self) -> None:
        if self._away:
            self._away = False
            self._waiting()

    def close(self) -> None:
        self._consumer.close()

    def _log_error(self, message: Message, error: KafkaError) -> None:
        """Log an error that the consumer returned instead of a record, once per partition and error code."""
        if error.fatal():
            raise to_connect_error(error, "read the source cluster")
        occurrence = (message.topic(), message.partition(), error.code())
        if error.code() != KafkaError._PARTITION_EOF and occurrence not in self._logged_errors:
            self._logged_errors.add(occurrence)
            log.warning(
                "Reading partition %s of topic %s of the source cluster is interrupted: %s (%s); retrying",
                message.partition(),
                message.topic(),
                error.str(),
                error.name(),
            )


class BestEffortWriter:
    """Writes small records to one partition of a topic without waiting for them. A lost record is only logged."""

    def __init__(self, properties: Mapping[str, str], topic: str) -> None:
        self._topic = topic
        self._producer: Producer = producer({**CLIENT_DEFAULTS, **to_librdkafka(properties)})
        self._loss_logged = False

    def write(self, key: bytes, value: bytes) -> None:
        """Pass a record to the producer."""
        try:
            self._producer.produce(self._topic, value, key, partition=0, on_delivery=self._delivered)
        except BufferError:
            self._log_loss("the producer's buffer is full")
        except KafkaException as exception:
            self._log_loss(exception.args[0].str())

    def poll(self) -> None:
        """Process the delivery reports that have arrived, without waiting."""
        self._producer.poll(0)

    def close(self, timeout: float = 5.0) -> None:
        """Wait up to ``timeout`` seconds for pending records."""
        if left := self._producer.flush(timeout):
            self._log_loss(f"{left} were not acknowledged within {timeout:g} s")

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self._log_loss(error.str())
        else:
            self._loss_logged = False

    def _log_loss(self, why: str) -> None:
        if not self._loss_logged:
            self._loss_logged = True
            log.error("Records of topic %s were lost: %s", self._topic, why)
