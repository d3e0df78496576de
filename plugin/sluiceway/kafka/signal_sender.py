"""Sends a record to a signal topic on any cluster, for the REST API. Blocks until Kafka has acknowledged the record."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from confluent_kafka import KafkaError, Message

from sluiceway.errors import KafkaClientError
from sluiceway.kafka.admin import create_topic, partition_count
from sluiceway.kafka.clients import CLIENT_DEFAULTS, AdminClient, connection_properties, producer, to_librdkafka
from sluiceway.kafka.errors import mapped_errors, to_connect_error

log = logging.getLogger(__name__)

_CLIENT_ID = "sluiceway-signals"
_SECONDS = 10.0
_FLUSH_SECONDS = _SECONDS + 5.0  # the producer reports its own timeout before


def send_signal(properties: Mapping[str, str], topic: str, key: bytes, value: bytes) -> None:
    """Write a record to partition 0 of a topic. Create the topic with one partition if it does not exist.

    Readers of signals read partition 0 only. ``properties`` are a Java or librdkafka client's; all but those of the connection
    are ignored. Waits up to 10 s for each request. Raises KafkaClientError, and ConfigError for properties that only Java
    supports.
    """
    connection = {
        **connection_properties(properties),
        "bootstrap.servers": properties["bootstrap.servers"],
        "client.id": _CLIENT_ID,
    }
    config = {**CLIENT_DEFAULTS, **to_librdkafka(connection)}
    _create_if_missing(config, topic)
    failures: list[KafkaError] = []

    def note(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failures.append(error)

    settings = {"acks": "all", "enable.idempotence": "true", "linger.ms": "0", "delivery.timeout.ms": str(int(_SECONDS * 1000))}
    sender = producer({**config, **settings})
    with mapped_errors(f"write to topic '{topic}'"):
        sender.produce(topic, value, key, partition=0, on_delivery=note)
    left = sender.flush(_FLUSH_SECONDS)
    if failures:
        raise to_connect_error(failures[0], f"write to topic '{topic}'")
    if left:
        raise KafkaClientError(f"Cannot write to topic '{topic}': no acknowledgement within {_FLUSH_SECONDS:g} s.", "_TIMED_OUT")


def _create_if_missing(config: Mapping[str, str], topic: str) -> None:
    with mapped_errors("create a Kafka admin client"):
        admin = AdminClient({**config}, logger=log)
    if partition_count(admin, topic, _SECONDS) is not None:
        return
    try:
        # Compaction would remove signals that were not read yet: all of a connector have the same key.
        create_topic(admin, topic, partitions=1, settings={"cleanup.policy": "delete"})
    except KafkaClientError as error:
        raise KafkaClientError(
            f"Signal topic '{topic}' does not exist and was not created: {error} Create it with one partition.", error.code
        ) from error
