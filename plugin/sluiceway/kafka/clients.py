"""Makes producers, consumers and admin clients from a worker's properties, with Connect's defaults and client ids.

Properties may be the Java clients' or librdkafka's; ``client_properties`` maps the former to the latter.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from confluent_kafka import OFFSET_END, OFFSET_STORED, Consumer, KafkaError, Message, Producer
from confluent_kafka import TopicPartition as TopicPartitionOffset
from confluent_kafka.admin import AdminClient

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConfigError
from sluiceway.kafka.client_properties import to_java, to_librdkafka
from sluiceway.kafka.errors import mapped_errors

__all__ = [
    "CLIENT_DEFAULTS",
    "CONSUMER_DEFAULTS",
    "OFFSET_END",
    "OFFSET_STORED",
    "AdminClient",
    "ConsumedMessage",
    "Consumer",
    "Message",
    "Producer",
    "TopicPartitionOffset",
    "admin_client",
    "connection_properties",
    "consumer",
    "consumer_config",
    "internal_consumer_config",
    "internal_producer_config",
    "java_consumer_config",
    "producer",
    "producer_config",
    "to_librdkafka",
    "transactional_producer_config",
]

log = logging.getLogger(__name__)
LASTS_SECONDS = 10.0
"""The time after which trouble that librdkafka retries is a warning."""

_REPEAT_SECONDS = 60.0  # librdkafka itself suppresses identical connection errors for 30 s
_MOST_KINDS = 1000

# Being fenced is normal operation and is raised as FencedError. librdkafka logs it three times over as a fatal error.
_FENCED = ("(_FENCED)", "old epoch", "fenced by")
# Lost and refused connections, timeouts, moved leaders and coordinators: librdkafka repeats the request by itself.
_RETRIED = re.compile(r"^(FAIL|GETPID|REQTMOUT) |retrying|will retry|not.?leader|brokers are down", re.IGNORECASE)
_SETTINGS = re.compile(r"authenticat|handshake|certificate", re.IGNORECASE)  # wrong ones do not heal


@dataclass(slots=True)
class _Kind:
    """Messages of one client that differ only in numbers: when the current series began, last occurred and was last shown."""

    began: float
    last: float
    shown: float = float("-inf")


class ClientLogFilter(logging.Filter):
    """Shows messages that differ only in numbers once a minute, and retried trouble at DEBUG until it has lasted 10 s.

    Trouble lasts if its message comes again 10 s or more after the first one of a series. A series ends with a minute without it.
    Then the level is WARNING. Messages about being fenced are never shown.
    """

    def __init__(self) -> None:
        super().__init__()
        self._kinds: dict[str, _Kind] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        if any(text in message for text in _FENCED):
            return False
        kind = self._kind(re.sub(r"[0-9]+", "", message), record.created)
        if _RETRIED.search(message) and not _SETTINGS.search(message):
            if record.created - kind.began < LASTS_SECONDS:
                _set_level(record, logging.DEBUG)
                return logging.getLogger(record.name).isEnabledFor(logging.DEBUG)
            _set_level(record, min(record.levelno, logging.WARNING))
        if record.created < kind.shown + _REPEAT_SECONDS:
            return False
        kind.shown = record.created
        return True

    def _kind(self, text: str, now: float) -> _Kind:
        kind = self._kinds.get(text)
        if kind is None or now >= kind.last + _REPEAT_SECONDS:
            if len(self._kinds) >= _MOST_KINDS:
                self._kinds.clear()
            kind = self._kinds[text] = _Kind(now, now)
        kind.last = now
        return kind


def _set_level(record: logging.LogRecord, level: int) -> None:
    record.levelno, record.levelname = level, logging.getLevelName(level)


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


log.addFilter(ClientLogFilter())
_settings_log = logging.getLogger(f"{__name__}.settings")  # whose lines are ours

_IDEMPOTENCE = "enable.idempotence"
_ONE_IN_FLIGHT = {"max.in.flight.requests.per.connection": "1"}
_DELIVERY_TIMEOUT, _TRANSACTION_TIMEOUT = "delivery.timeout.ms", "transaction.timeout.ms"
_TRANSACTIONAL_ID = "transactional.id"
_TRANSACTION_MS = 60_000  # the clients' default, Java's and librdkafka's

# The keys that apply to all clients, such as those of a worker.
_CLIENT_KEYS = ("security.", "sasl.", "ssl.", "client.dns.lookup", "request.timeout.ms", "socket.", "broker.address.")
# With librdkafka's default of 10 s the stores would stay disconnected that long after a broker restart.
# With its default of 30 s a deleted topic would pass for one that is still being created.
_INTERNAL = {"reconnect.backoff.max.ms": "1000", "topic.metadata.propagation.max.ms": "5000"}
CLIENT_DEFAULTS = {"log.connection.close": "false", "topic.metadata.refresh.interval.ms": "60000"}
"""Defaults of every client, for the worker's cluster and for others."""

CONSUMER_DEFAULTS = {
    "enable.auto.commit": "false",
    "auto.offset.reset": "earliest",
    "isolation.level": "read_uncommitted",  # Java's default and therefore Connect's
    "fetch.wait.max.ms": "100",
    "queued.max.messages.kbytes": "8192",
    "queued.min.messages": "20000",  # more of them leave the processor's cache before they are read
    "fetch.queue.backoff.ms": "10",  # the default pauses a partition for a second whenever its queue is full
    "fetch.message.max.bytes": "1048576",
}
"""Further defaults of every consumer of records. One consumer reads about 900,000 small records a second with them, and
about 195,000 with librdkafka's own defaults."""


def _config(
    worker: WorkerConfig, client_id: str, defaults: Mapping[str, str], *layers: Mapping[str, str], group: str | None = None
) -> dict[str, str]:
    """Merge the worker's keys with each layer (later ones win) and map the result to librdkafka's keys."""
    return {**CLIENT_DEFAULTS, **defaults, **to_librdkafka(_merged(worker, client_id, *layers, group=group))}


def _merged(worker: WorkerConfig, client_id: str, *layers: Mapping[str, str], group: str | None) -> dict[str, str]:
    merged = connection_properties(worker.raw)
    merged |= {"bootstrap.servers": worker.bootstrap_servers, "client.id": client_id}
    for layer in layers:
        merged |= layer
    if group is not None:
        merged["group.id"] = group
    return merged


def connection_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return those properties that say how any client connects to brokers, without ``bootstrap.servers``."""
    return {key: value for key, value in properties.items() if key.startswith(_CLIENT_KEYS)}


def producer_config(worker: WorkerConfig, client_id: str, overrides: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the config of a producer that neither loses nor reorders records and partitions keys as Java does.

    ``overrides`` are Java or librdkafka keys (``producer.override.*`` without the prefix). They win over all others,
    including the worker's ``producer.*`` keys. Connect disables idempotence, to support brokers before 0.11. It is enabled
    here: no retry writes a duplicate. A transactional id never applies: a producer that has one sends nothing outside of
    transactions, and fences the other producers of the worker.
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
    if config.pop(_TRANSACTIONAL_ID, None) is not None:
        _settings_log.warning("The transactional.id in the settings of producer %s is ignored.", client_id)
    return config


def transactional_producer_config(
    worker: WorkerConfig,
    client_id: str,
    transactional_id: str,
    overrides: Mapping[str, str] | None = None,
    *,
    longest_ms: int = 0,
) -> dict[str, str]:
    """Return the config of an exactly-once task's producer: that of ``producer_config`` with a transactional id.

    ``longest_ms`` is the planned length of its transactions in milliseconds. ``transaction.timeout.ms`` is set 30 s above
    it, and to a minute at least, unless it is overridden. Raises ConfigError if an override of it is too short, and for
    overrides that rule out transactions.
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
    # librdkafka refuses a delivery timeout that is longer than the transaction timeout.
    config[_DELIVERY_TIMEOUT] = str(min(int(config[_DELIVERY_TIMEOUT]), int(timeout)))
    return {**config, _TRANSACTION_TIMEOUT: timeout, _TRANSACTIONAL_ID: transactional_id}


def consumer_config(
    worker: WorkerConfig,
    client_id: str,
    group: str,
    overrides: Mapping[str, str] | None = None,
    *,
    defaults: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the config of a consumer with explicit commits and queues large enough for full throughput.

    ``defaults`` are librdkafka's keys, which apply before the worker's ``consumer.*`` keys and ``overrides``.
    ``group`` wins over the ``group.id`` of the worker's ``consumer.*`` keys and of ``overrides``: the caller commits in that
    group and reads its offsets through other clients, so all must use the same one. ``sink_group`` returns a sink's. Nothing
    turns on commits by the consumer itself, which would include records that are not handled yet.
    """
    all_defaults = {**CONSUMER_DEFAULTS, **(defaults or {})}
    config = _config(worker, client_id, all_defaults, worker.with_prefix("consumer."), overrides or {}, group=group)
    return {**config, "enable.auto.commit": "false"}


def java_consumer_config(
    worker: WorkerConfig, client_id: str, group: str, overrides: Mapping[str, str], most: int
) -> dict[str, str] | None:
    """Return ``consumer_config`` for Kafka's Java consumer, which assigns itself partitions and commits nothing.

    ``most`` is its ``max.poll.records``. None if properties of the worker or of the connector only exist in librdkafka.
    """
    merged = _merged(worker, client_id, worker.with_prefix("consumer."), overrides, group=group)
    java = to_java(merged, CONSUMER_DEFAULTS["auto.offset.reset"])
    return None if java is None else {**java, "enable.auto.commit": "false", "max.poll.records": str(most)}


def internal_producer_config(worker: WorkerConfig, client_id: str, **settings: str) -> dict[str, str]:
    """Return the config of a producer for an internal topic. As in Connect, the worker's ``producer.*`` keys do not apply.

    A write is sent at once and fails after 30 s, so that the waiting caller learns that no broker is reachable. A deleted
    topic is not created again: an empty topic that is not compacted would hide the loss.
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
    """Return the config of a consumer for an internal topic. It joins no group, commits nothing and never skips records.

    A position outside the topic is an error instead of a jump to the topic's beginning or end.
    """
    return {
        **_config(worker, client_id, _INTERNAL),
        "group.id": worker.group_id,  # required by librdkafka, but never joined
        "enable.auto.commit": "false",
        "enable.auto.offset.store": "false",
        "allow.auto.create.topics": "false",
        "auto.offset.reset": "error",
        "isolation.level": "read_committed",
        "fetch.wait.max.ms": "500",
        **settings,
    }


def producer(config: Mapping[str, Any]) -> Producer:
    """Create a producer; raises KafkaClientError for a config that librdkafka refuses.

    It has one request in flight unless the config says otherwise, as Connect's. With more, even an idempotent producer loses
    records: a leader that refuses the first request for a new partition, which it is still creating, and accepts the second one,
    takes the retry of the first for a duplicate.
    """
    with mapped_errors("create a Kafka producer"):
        return Producer({**_ONE_IN_FLIGHT, **config}, logger=log)


def consumer(config: Mapping[str, Any]) -> Consumer:
    """Create a consumer; raises KafkaClientError for a config that librdkafka refuses."""
    with mapped_errors("create a Kafka consumer"):
        return Consumer(dict(config), logger=log)


def group_reader_config(worker: WorkerConfig, group: str, overrides: Mapping[str, str]) -> dict[str, str]:
    """Return the config of a consumer that only asks for the offsets of a group, with the settings of ``admin_client``."""
    layers = worker.admin_client_keys, overrides
    return {**_config(worker, f"{worker.group_id}-shared-admin", _INTERNAL, *layers, group=group), "enable.auto.commit": "false"}


def admin_client(
    worker: WorkerConfig, overrides: Mapping[str, str] | None = None, *, client_id: str | None = None
) -> AdminClient:
    """Create an admin client with the worker's ``admin.*`` keys.

    ``overrides`` are a connector's ``admin.override.*`` without the prefix; ``client_id`` defaults to Connect's client id.
    """
    config = _config(worker, client_id or f"{worker.group_id}-shared-admin", {}, worker.admin_client_keys, overrides or {})
    with mapped_errors("create a Kafka admin client"):
        return AdminClient({**config}, logger=log)
