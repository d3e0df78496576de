"""Reads another cluster's records from given offsets on, and writes notes to it. Executor; for one thread each."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from sluiceway.api.task import TopicPartition as Place
from sluiceway.errors import ConfigError
from sluiceway.kafka.clients import CLIENT_DEFAULTS, CONSUMER_DEFAULTS, consumer, producer, to_librdkafka
from sluiceway.kafka.errors import mapped_errors, to_connect_error

log = logging.getLogger(__name__)

_BATCH = 2000
_STARTS = {"earliest": OFFSET_BEGINNING, "latest": OFFSET_END}
_READER = {**CLIENT_DEFAULTS, **CONSUMER_DEFAULTS}
# One request after the other: the newest record of a key has to stay the last one.
_NOTES = {**CLIENT_DEFAULTS, "max.in.flight.requests.per.connection": "1"}
_ALWAYS = {"enable.auto.commit": "false", "enable.auto.offset.store": "false"}


class PartitionReader:
    """Reads partitions from positions on; None starts where ``auto.offset.reset`` says, by default at the earliest record.

    Belongs to no consumer group and commits nothing. A partition that cannot be read now is tried again and again.
    Raises KafkaClientError for properties that librdkafka refuses, ConfigError for an ``auto.offset.reset`` without a start.
    """

    def __init__(self, properties: Mapping[str, str], positions: Mapping[Place, int | None]) -> None:
        # librdkafka asks for a group; nothing joins it.
        config = {**_READER, "group.id": properties["client.id"], **to_librdkafka(properties), **_ALWAYS}
        start = _STARTS.get(config["auto.offset.reset"])
        if start is None and None in positions.values():
            why = "Partitions without a stored offset need a start: earliest or latest"
            raise ConfigError("auto.offset.reset", config["auto.offset.reset"], why)
        self._consumer: Consumer = consumer(config)
        assignment = [TopicPartition(*place, start if at is None else at) for place, at in positions.items()]
        with mapped_errors("read the source cluster"):
            self._consumer.assign(assignment)
        self._complaints: set[tuple[str | None, int | None, int]] = set()

    def poll(self, timeout: float) -> list[Message]:
        """Return what has come, at once if something has, else after at most ``timeout`` seconds. Raises KafkaClientError."""
        with mapped_errors("read the source cluster"):
            first = self._consumer.poll(timeout)
            if first is None:
                return []
            messages = [first, *self._consumer.consume(_BATCH, 0)]
        return [message for message in messages if message.error() is None or self._complain(message)]

    def close(self) -> None:
        self._consumer.close()

    def _complain(self, message: Message) -> bool:
        """Log an error that came in the place of a record, once for each partition and kind, and return False."""
        error = message.error()
        if error.fatal():
            raise to_connect_error(error, "read the source cluster")
        complaint = (message.topic(), message.partition(), error.code())
        if error.code() != KafkaError._PARTITION_EOF and complaint not in self._complaints:
            self._complaints.add(complaint)
            log.warning(
                "Reading partition %s of topic %s of the source cluster is interrupted: %s (%s); trying on",
                message.partition(),
                message.topic(),
                error.str(),
                error.name(),
            )
        return False


class BestEffortWriter:
    """Writes small records to one partition of a topic without waiting for them; one that is lost is only logged."""

    def __init__(self, properties: Mapping[str, str], topic: str) -> None:
        self._topic = topic
        self._producer: Producer = producer({**_NOTES, **to_librdkafka(properties)})
        self._complained = False

    def write(self, key: bytes, value: bytes) -> None:
        """Hand a record to the producer."""
        try:
            self._producer.produce(self._topic, value, key, partition=0, on_delivery=self._delivered)
        except BufferError:
            self._complain("too many are waiting to be written")
        except KafkaException as exception:
            self._complain(exception.args[0].str())

    def poll(self) -> None:
        """Take note of what has been answered by now."""
        self._producer.poll(0)

    def close(self, timeout: float = 5.0) -> None:
        """Give what is on its way so many seconds to arrive."""
        if left := self._producer.flush(timeout):
            self._complain(f"{left} were not acknowledged within {timeout:g} s")

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self._complain(error.str())
        else:
            self._complained = False

    def _complain(self, why: str) -> None:
        if not self._complained:
            self._complained = True
            log.error("Records of topic %s were lost: %s", self._topic, why)
