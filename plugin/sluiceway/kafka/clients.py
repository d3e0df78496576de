"""Makes producers, consumers and admin clients from a worker's properties, with Connect's defaults and client ids.

What is configured are the Java clients' keys, or librdkafka's; ``java_keys`` has what becomes of each.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any, Protocol

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConfigError
from sluiceway.kafka.client_properties import to_librdkafka
from sluiceway.kafka.errors import mapped_errors

__all__ = [
    "CLIENT_DEFAULTS",
    "CONSUMER_DEFAULTS",
    "AdminClient",
    "ConsumedMessage",
    "Consumer",
    "Message",
    "Producer",
    "TopicPartition",
    "admin_client",
    "consumer",
    "consumer_config",
    "internal_consumer_config",
    "internal_producer_config",
    "producer",
    "producer_config",
    "to_librdkafka",
    "transactional_producer_config",
]

log = logging.getLogger(__name__)


class ConsumedMessage(Protocol):
    """The parts of a ``Message`` that a consumer returned and whose ``error()`` is None, so that its position is known.

    ``Message`` types these results as optional because it is also used for records that have not been written. Cast once
    per batch, where the consumer returns it.
    """

    def topic(self) -> str: ...

    def partition(self) -> int: ...

    def offset(self) -> int: ...

    def timestamp(self) -> tuple[int, int]:
        """Return the type of the timestamp (0: none) and milliseconds since the epoch."""

    def key(self) -> bytes | None: ...

    def value(self) -> bytes | None: ...

    def headers(self) -> list[tuple[str, bytes | None]] | None: ...

    def error(self) -> KafkaError | None: ...


# Being fenced is an everyday answer to a writer, and comes as FencedError; librdkafka calls it fatal three times over.
_FENCED = ("(_FENCED)", "old epoch", "fenced by")


class _Sparingly(logging.Filter):
    """Lets messages of one kind (the same but for numbers) through once a minute: librdkafka repeats itself every second."""

    def __init__(self) -> None:
        super().__init__()
        self._next: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        if any(text in message for text in _FENCED):
            return False
        kind = re.sub(r"[0-9]+", "", message)
        if record.created < self._next.get(kind, 0.0):
            return False
        if len(self._next) > 1000:
            self._next.clear()
        self._next[kind] = record.created + 60.0
        return True


log.addFilter(_Sparingly())

_IDEMPOTENCE, _IN_FLIGHT = "enable.idempotence", "max.in.flight.requests.per.connection"
_DELIVERY_TIMEOUT, _TRANSACTION_TIMEOUT = "delivery.timeout.ms", "transaction.timeout.ms"
_TRANSACTION_MS = 60_000  # the clients' default, Java's and librdkafka's

# The worker's own keys that hold for all its clients.
_CLIENT_KEYS = ("security.", "sasl.", "ssl.", "client.dns.lookup", "request.timeout.ms", "socket.", "broker.address.")
# librdkafka's 10 s would keep the stores blind that long after a broker's restart.
# For its 30 s a topic that is deleted would be taken for one that is about to be there.
_INTERNAL = {"reconnect.backoff.max.ms": "1000", "topic.metadata.propagation.max.ms": "5000"}
CLIENT_DEFAULTS = {"log.connection.close": "false", "topic.metadata.refresh.interval.ms": "60000"}
"""What every client has unless it is configured otherwise, whichever cluster it talks to."""

CONSUMER_DEFAULTS = {
    "enable.auto.commit": "false",
    "auto.offset.reset": "earliest",
    "isolation.level": "read_uncommitted",  # Java's default, and so Connect's
    "fetch.wait.max.ms": "100",
    "queued.max.messages.kbytes": "65536",
    "queued.min.messages": "200000",
    "fetch.queue.backoff.ms": "10",  # the default pauses a partition for a second each time its queue was full
    "fetch.message.max.bytes": "1048576",
}
"""What every consumer of records has besides. With librdkafka's defaults one consumer stops at about 195,000 small records a
second, with these at 900,000."""


def _config(
    worker: WorkerConfig, client_id: str, defaults: Mapping[str, str], *layers: Mapping[str, str], group: str | None = None
) -> dict[str, str]:
    """Return librdkafka's config from Java's keys: the worker's, then each layer, merged before they are mapped."""
    java = {key: value for key, value in worker.raw.items() if key.startswith(_CLIENT_KEYS)}
    java |= {"bootstrap.servers": worker.bootstrap_servers, "client.id": client_id}
    for layer in layers:
        java |= layer
    if group is not None:
        java["group.id"] = group
    return {**CLIENT_DEFAULTS, **defaults, **to_librdkafka(java)}


def producer_config(worker: WorkerConfig, client_id: str, overrides: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return a producer's config: nothing is lost or reordered, and keys land where Java's partitioner puts them.

    ``overrides`` are Java or librdkafka keys (``producer.override.*`` without the prefix) and win over everything,
    the worker's ``producer.*`` keys included. Connect turns idempotence off and allows one request in flight, for the sake
    of brokers before 0.11; here it is on, which keeps the order with several in flight and repeats nothing.
    """
    defaults = {
        "acks": "all",
        "enable.idempotence": "true",
        "partitioner": "murmur2_random",
        "delivery.timeout.ms": "2147483647",
        "message.max.bytes": "1048576",  # Java's max.request.size
        "queue.buffering.max.messages": "200000",
        "queue.buffering.max.kbytes": "32768",  # Java's buffer.memory
    }
    config = _config(worker, client_id, defaults, worker.with_prefix("producer."), overrides or {})
    if config[_IDEMPOTENCE].strip().lower() == "false":
        config.setdefault(_IN_FLIGHT, "1")  # with more, a repeated request would overtake others
    return config


def transactional_producer_config(
    worker: WorkerConfig,
    client_id: str,
    transactional_id: str,
    overrides: Mapping[str, str] | None = None,
    *,
    longest_ms: int = 0,
) -> dict[str, str]:
    """Return the config of an exactly-once task's producer: as ``producer_config``, with a transactional id.

    ``longest_ms`` is how long its transactions are meant to last; the cluster's limit for them is set 30 s above it, and
    never below a minute, unless ``transaction.timeout.ms`` is overridden. Raises ConfigError if that is too short, and for
    overrides that transactions do not go with.
    """
    config = producer_config(worker, client_id, overrides)
    for key, needed, others in ((_IDEMPOTENCE, "true", {"true"}), ("acks", "all", {"all", "-1"})):
        if config[key].strip().lower() not in others:
            raise ConfigError(f"producer.override.{key}", config[key], f"must be {needed} for a source that runs exactly once")
    timeout = config.get(_TRANSACTION_TIMEOUT) or str(max(_TRANSACTION_MS, longest_ms + 30_000))
    if int(timeout) <= longest_ms:
        raise ConfigError(
            f"producer.override.{_TRANSACTION_TIMEOUT}",
            timeout,
            f"must be above the {longest_ms} ms that each transaction lasts (transaction.boundary.interval.ms)",
        )
    # librdkafka refuses to try longer to send a record than its transaction may last.
    config[_DELIVERY_TIMEOUT] = str(min(int(config[_DELIVERY_TIMEOUT]), int(timeout)))
    return {**config, _TRANSACTION_TIMEOUT: timeout, "transactional.id": transactional_id}


def consumer_config(
    worker: WorkerConfig, client_id: str, group: str, overrides: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return a consumer's config: commits are explicit, and queues are large enough for full speed.

    ``group`` wins over the ``group.id`` of the worker's ``consumer.*`` keys and of ``overrides``: the caller commits in that
    group and asks for its offsets elsewhere, so both must be the same. For a sink, ``sink_group`` returns it.
    """
    return _config(worker, client_id, CONSUMER_DEFAULTS, worker.with_prefix("consumer."), overrides or {}, group=group)


def internal_producer_config(worker: WorkerConfig, client_id: str, **settings: str) -> dict[str, str]:
    """Return the config of a producer for an internal topic: the worker's ``producer.*`` keys do not count, as in Connect.

    A write is handed on at once and given up after 30 s, so that whoever waits for it hears of a broker that is away. A
    topic that is gone stays gone: to make it anew, empty and not compacted, would hide the loss.
    """
    return {
        **_config(worker, client_id, _INTERNAL),
        "acks": "all",
        "allow.auto.create.topics": "false",
        "enable.idempotence": "true",
        "partitioner": "murmur2_random",
        "linger.ms": "0",
        "delivery.timeout.ms": "30000",
        **settings,
    }


def internal_consumer_config(worker: WorkerConfig, client_id: str, **settings: str) -> dict[str, str]:
    """Return the config of a consumer for an internal topic: it belongs to no group, commits nothing and never skips.

    A position that the topic does not have is an error, not a jump to one of its ends.
    """
    return {
        **_config(worker, client_id, _INTERNAL),
        "group.id": worker.group_id,  # librdkafka asks for one; nothing joins it
        "enable.auto.commit": "false",
        "enable.auto.offset.store": "false",
        "allow.auto.create.topics": "false",
        "auto.offset.reset": "error",
        "isolation.level": "read_committed",
        "fetch.wait.max.ms": "500",
        **settings,
    }


def producer(config: Mapping[str, Any]) -> Producer:
    """Create a producer; raises KafkaClientError for a config that librdkafka refuses."""
    with mapped_errors("create a Kafka producer"):
        return Producer(dict(config), logger=log)


def consumer(config: Mapping[str, Any]) -> Consumer:
    """Create a consumer; raises KafkaClientError for a config that librdkafka refuses."""
    with mapped_errors("create a Kafka consumer"):
        return Consumer(dict(config), logger=log)


def admin_client(
    worker: WorkerConfig, overrides: Mapping[str, str] | None = None, *, client_id: str | None = None
) -> AdminClient:
    """Create an admin client with the worker's ``admin.*`` keys and, unless ``client_id`` is another, Connect's client id.

    ``overrides`` are a connector's ``admin.override.*`` without the prefix.
    """
    config = _config(worker, client_id or f"{worker.group_id}-shared-admin", {}, worker.admin_client_keys, overrides or {})
    with mapped_errors("create a Kafka admin client"):
        return AdminClient(config, logger=log)
