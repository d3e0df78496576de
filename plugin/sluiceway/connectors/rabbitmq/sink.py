"""RabbitSinkConnector and its task: publish records to exchanges of RabbitMQ, with the server's confirms."""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sluiceway.api import BatchLimits, BatchSinkTask, Outcome, SinkConnector, SinkRecord, TopicPartition, WriteResult
from sluiceway.config.definition import ConfigDef, ConfigValue, Importance, ValidatedValue
from sluiceway.config.validators import EnumText, NonEmptyString
from sluiceway.connectors.errors import RefusedError, UnreachableError
from sluiceway.connectors.keys import flag, refused_keys, text, unreachable_key, unreachable_seconds, whole
from sluiceway.connectors.rabbitmq.connection import CONNECTION_KEYS, RabbitConnector, Server, server_of
from sluiceway.connectors.rabbitmq.messages import EXCHANGE as EXCHANGE_HEADER
from sluiceway.connectors.rabbitmq.messages import PREFIX, PROPERTIES, REDELIVER, ROUTING_KEY, STREAM_OFFSET
from sluiceway.connectors.rabbitmq.publisher import Publication, Publisher
from sluiceway.connectors.rabbitmq.session import Session
from sluiceway.connectors.simple_values import record_name, required_bytes
from sluiceway.data import java_text
from sluiceway.errors import ConnectError, DataError

EXCHANGE, KEY, MODE = "rabbitmq.exchange", "rabbitmq.routing.key", "rabbitmq.delivery.mode"
CONTENT_TYPE, MANDATORY = "rabbitmq.content.type", "rabbitmq.mandatory"
FORWARD_KEY, FORWARD_METADATA, FORWARD_HEADERS = (
    "rabbitmq.forward.kafka.key",
    "rabbitmq.forward.kafka.metadata",
    "rabbitmq.forward.kafka.headers",
)
WINDOW, ACK_TIMEOUT = "rabbitmq.publish.max.batch.size", "rabbitmq.publish.ack.timeout"
TOPIC_PLACEHOLDER, PARTITION_PLACEHOLDER, KEY_PLACEHOLDER = "${topic}", "${partition}", "${key}"
_MESSAGES = "Messages"
_PLACEHOLDERS = f"{TOPIC_PLACEHOLDER} is the topic, {PARTITION_PLACEHOLDER} the partition"
_SHORT = 255  # bytes of a short string of AMQP
_FRAME = 131_072 - 64  # bytes of properties and headers, which must be in one frame
_PATIENCE = 5.0  # seconds without a confirm after which the runtime is told, which may pause or stop the task
_MOST_BYTES = 32 * 1024 * 1024
_PRECONDITION_FAILED = 406

CONFIG = ConfigDef(
    [
        *CONNECTION_KEYS,
        text(
            name=EXCHANGE,
            default="",
            importance=Importance.HIGH,
            group=_MESSAGES,
            doc=f"The exchange, which must exist; {_PLACEHOLDERS}. Empty is the default exchange, whose routing keys are "
            "names of queues.",
        ),
        text(
            name=KEY,
            default=TOPIC_PLACEHOLDER,
            importance=Importance.HIGH,
            group=_MESSAGES,
            doc=f"The routing key; {_PLACEHOLDERS}, {KEY_PLACEHOLDER} the record's key.",
        ),
        text(
            name=MODE,
            default="PERSISTENT",
            validator=EnumText("PERSISTENT", "TRANSIENT"),
            group=_MESSAGES,
            doc="Whether durable queues keep messages when the server restarts.",
        ),
        flag(
            name=MANDATORY,
            default=True,
            group=_MESSAGES,
            doc="Whether a message that no queue takes is a bad record. If not, the server drops it.",
        ),
        text(
            name=CONTENT_TYPE,
            default=None,
            validator=NonEmptyString(),
            group=_MESSAGES,
            doc="The messages' content type, such as application/json.",
        ),
        flag(name=FORWARD_KEY, default=False, group=_MESSAGES, doc="Whether the record's key is the message's correlation id."),
        flag(
            name=FORWARD_METADATA,
            default=False,
            group=_MESSAGES,
            doc="Whether messages have the headers KAFKA_TOPIC, KAFKA_PARTITION, and KAFKA_OFFSET.",
        ),
        flag(
            name=FORWARD_HEADERS,
            default=False,
            group=_MESSAGES,
            doc=f"Whether the record's headers are headers of the message. Those that begin with {PREFIX} lose that, and set the "
            "message's properties, as RabbitQueueSource has made them.",
        ),
        whole(
            WINDOW, 1000, 1, _MESSAGES, "The most messages that are published and not confirmed. 1 keeps the order at all costs."
        ),
        whole(ACK_TIMEOUT, 30_000, 1, _MESSAGES, "Milliseconds without a confirm after which the connection counts as lost."),
        unreachable_key(_MESSAGES, "a server"),
        *refused_keys(
            {
                "rabbitmq.publish.max.retries": "messages are published again until the server has them",
                "rabbitmq.topic.queue.map": f"leave {EXCHANGE} empty and set {KEY} to a queue, or to {TOPIC_PLACEHOLDER} after "
                "RegexRouter",
            }
        ),
    ]
)


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """The server, and the form of the messages there. ``ack_timeout`` is in seconds."""

    server: Server
    exchange: str
    routing_key: str
    delivery_mode: int
    mandatory: bool
    content_type: str | None
    forwards_key: bool
    forwards_metadata: bool
    forwards_headers: bool
    window: int
    ack_timeout: float
    limits: BatchLimits


def sink_options(config: Mapping[str, str]) -> SinkOptions:
    """Return the options of a config. Raises ConfigError."""
    values = CONFIG.parse(config)
    server, content_type = server_of(values), values[CONTENT_TYPE]
    return SinkOptions(
        server=server,
        exchange=str(values[EXCHANGE]),
        routing_key=str(values[KEY]),
        delivery_mode=2 if str(values[MODE]).upper() == "PERSISTENT" else 1,
        mandatory=bool(values[MANDATORY]),
        content_type=None if content_type is None else str(content_type),
        forwards_key=bool(values[FORWARD_KEY]),
        forwards_metadata=bool(values[FORWARD_METADATA]),
        forwards_headers=bool(values[FORWARD_HEADERS]),
        window=int(str(values[WINDOW])),
        ack_timeout=int(str(values[ACK_TIMEOUT])) / 1000,
        limits=BatchLimits(
            records=2**31,
            size=_MOST_BYTES,
            longest_backoff=server.longest_pause,
            unreachable=unreachable_seconds(values),
        ),
    )


class RabbitSinkTask(BatchSinkTask[Publication]):
    """Publishes records, and takes those for done that the server has confirmed.

    What is on its way when ``put`` has to be repeated, because the server blocks or is slow, is not published again; what had no
    confirm when a connection was lost is.
    """

    _publisher: Publisher | None = None

    def start(self, config: Mapping[str, str]) -> None:
        from pika.spec import BasicProperties

        self._options = options = sink_options(config)
        self.limits = options.limits
        self._name = str(self.context.configs.get("name", ""))
        self._on_the_way: dict[int, Publication] = {}  # those of a put that has not ended, by the records' identities
        self._connections = 0
        self._one_by_one = False
        self._properties = BasicProperties(content_type=options.content_type, delivery_mode=options.delivery_mode)
        self._plain = not (options.forwards_key or options.forwards_metadata or options.forwards_headers)

    def stop(self) -> None:
        self._disconnect()

    def put(self, records: Sequence[SinkRecord]) -> None:
        super().put(records)
        self._on_the_way.clear()
        if self._one_by_one and self._publisher is not None:
            self._one_by_one, self._publisher.window = False, self._options.window

    def close(self, partitions: Collection[TopicPartition]) -> None:
        super().close(partitions)
        self._on_the_way.clear()

    def prepare(self, record: SinkRecord) -> Publication:
        found = self._on_the_way.get(id(record))
        if found is not None:
            return found
        options = self._options
        try:
            made = Publication(
                record,
                _filled(options.exchange, record, "exchange"),
                _filled(options.routing_key, record, "routing key"),
                _bytes(record.value, record, "value"),
                self._properties if self._plain else self._own_properties(record),
            )
        except (UnicodeError, ValueError, ArithmeticError) as error:
            raise DataError(f"{record_name(record)} cannot be written to RabbitMQ: {error}") from error
        self._on_the_way[id(record)] = made  # which refers to the record, so that the identity is its own
        return made

    def size_of(self, item: Publication) -> int:
        return len(item.body)

    def write(self, items: Sequence[Publication]) -> Sequence[WriteResult]:
        publisher = self._opened()
        fresh = [each for each in items if not each.sent]
        for each in fresh:
            each.sent, each.result, each.returned = True, None, ""
        publisher.publish(fresh)
        failure = self._wait(publisher)
        if failure is not None:
            self._lost(publisher, items, failure)
        later = WriteResult(Outcome.RETRY, str(failure) if failure else publisher.blocked or "its confirms are waited for")
        results = [each.result or later for each in items]
        for each in items:
            if each.result is not None and each.result.outcome is Outcome.RETRY:
                each.sent = False
        return results

    def metrics(self) -> Mapping[str, float]:
        """Return also how often a connection was opened."""
        return {**super().metrics(), "connections-opened": self._connections}

    def _wait(self, publisher: Publisher) -> Exception | None:
        """Wait for results while there is progress, and return why the connection is lost if it is."""
        while not publisher.idle and publisher.failure is None and not publisher.blocked:
            before = publisher.confirmed
            publisher.wait(min(_PATIENCE, self._options.ack_timeout))
            if publisher.confirmed == before and not publisher.idle:
                break
        if publisher.failure is None and not publisher.idle and publisher.silence > self._options.ack_timeout:
            publisher.close()
            return UnreachableError(f"RabbitMQ has not confirmed a message for {publisher.silence:.0f} s")
        return publisher.failure

    def _lost(self, publisher: Publisher, items: Sequence[Publication], failure: Exception) -> None:
        """Mark what must be published again after a connection was lost. Raises what ended it if that does not pass."""
        self._disconnect()
        unconfirmed = publisher.unconfirmed()
        for each in items:
            each.sent = each.result is not None
        if isinstance(failure, RefusedError) and failure.code == _PRECONDITION_FAILED:
            # The server does not like one of the messages, such as its size, and does not say which one.
            if len(unconfirmed) == 1:
                unconfirmed[0].result, unconfirmed[0].sent = WriteResult(Outcome.REFUSED, str(failure)), True
            self._one_by_one = True
        elif not isinstance(failure, UnreachableError) or not any(each.result for each in items):
            raise failure

    def _opened(self) -> Publisher:
        if self._publisher is not None and self._publisher.failure is not None:
            failure = self._publisher.failure
            self._disconnect()
            for each in self._on_the_way.values():
                each.sent = each.result is not None
            if not isinstance(failure, UnreachableError):
                raise failure
        if self._publisher is None:
            options = self._options
            self._connections += 1
            window = 1 if self._one_by_one else options.window
            self._publisher = Publisher(
                options.server, self._name, window, mandatory=options.mandatory, first=self._connections - 1
            )
        return self._publisher

    def _disconnect(self) -> None:
        publisher, self._publisher = self._publisher, None
        if publisher is not None:
            publisher.close()

    def _own_properties(self, record: SinkRecord) -> Any:
        from pika import exceptions
        from pika.spec import BasicProperties

        options = self._options
        given: dict[str, Any] = {"content_type": options.content_type, "delivery_mode": options.delivery_mode}
        headers: dict[str, Any] = {}
        if options.forwards_metadata:
            headers["KAFKA_TOPIC"], headers["KAFKA_PARTITION"] = record.original_topic_partition
            headers["KAFKA_OFFSET"] = record.original_kafka_offset
        if options.forwards_headers:
            for header in record.headers:
                _take(header.key, header.value, given, headers)
        if options.forwards_key and record.key is not None:
            given["correlation_id"] = _bytes(record.key, record, "key").decode()
        properties = BasicProperties(**given, headers=headers or None)
        try:
            size = sum(len(each) for each in properties.encode())
        except exceptions.ShortStringTooLong:
            what = "the key as correlation id, a property, or the name of a header"
            raise DataError(
                f"{record_name(record)} cannot be written to RabbitMQ: {what} has more than {_SHORT} bytes."
            ) from None
        except (exceptions.AMQPError, struct.error, AttributeError, TypeError) as error:
            raise DataError(f"The headers of {record_name(record)} cannot be written to RabbitMQ: {error}") from error
        if size > _FRAME:
            raise DataError(
                f"The headers of {record_name(record)} have {size} bytes, more than the {_FRAME} that a message may have."
            )
        return properties


_OWN = {PROPERTIES["user_id"], PROPERTIES["delivery_mode"], REDELIVER, EXCHANGE_HEADER, ROUTING_KEY, PREFIX + STREAM_OFFSET}
"""Headers of records that a message cannot have: they are of the login, of the config, or of the message that was read."""
_BY_HEADER = {header: name for name, header in PROPERTIES.items()}
_NUMBERS = ("priority", "timestamp")


def _take(name: str, value: Any, properties: dict[str, Any], headers: dict[str, Any]) -> None:
    """Add a header of a record to the properties or the headers of a message."""
    if name in _OWN:
        return
    if name in _BY_HEADER:
        if value is not None:
            known = _BY_HEADER[name]
            properties[known] = int(java_text(value)) if known in _NUMBERS else java_text(value)
        return
    simple = value is None or isinstance(value, (str, bytes, bool)) or (isinstance(value, int) and -(2**63) <= value < 2**63)
    headers[name.removeprefix(PREFIX)] = value if simple else java_text(value)


def _filled(template: str, record: SinkRecord, what: str) -> str:
    """Return an exchange or a routing key with its placeholders replaced. Raises DataError if it is too long."""
    if "${" not in template:
        return template
    found = template.replace(TOPIC_PLACEHOLDER, record.topic).replace(PARTITION_PLACEHOLDER, str(record.kafka_partition))
    if KEY_PLACEHOLDER in found:
        if record.key is None:
            raise DataError(f"The {what} needs a key, and {record_name(record)} has none.")
        found = found.replace(KEY_PLACEHOLDER, _bytes(record.key, record, "key").decode())
    if len(found.encode()) > _SHORT:
        raise DataError(f"The {what} of {record_name(record)} has {len(found.encode())} bytes, more than {_SHORT}.")
    return found


def _bytes(value: Any, record: SinkRecord, what: str) -> bytes:
    """Return a simple value as the body of a message."""
    if value is None:
        raise DataError(f"{record_name(record)} has no {what}, and a message needs a body. Leave such records out with Filter.")
    return required_bytes(value, record, what)


class RabbitSinkConnector(RabbitConnector, SinkConnector):
    """Publishes records to exchanges of RabbitMQ, with publisher confirms: at least once."""

    task_class = RabbitSinkTask

    @classmethod
    def config_def(cls) -> ConfigDef:
        return CONFIG

    @classmethod
    def conflicts(cls, values: Mapping[str, ConfigValue], config: Mapping[str, str]) -> Mapping[str, str]:
        problems = {}
        for name in (EXCHANGE, KEY):
            if len(str(values[name]).encode()) > _SHORT:
                problems[name] = f"must not have more than {_SHORT} bytes"
        if KEY_PLACEHOLDER in str(values[EXCHANGE]):
            problems[EXCHANGE] = f"cannot have {KEY_PLACEHOLDER}: use it in {KEY}"
        return problems

    @classmethod
    def try_server(cls, session: Session, found: Mapping[str, ValidatedValue]) -> None:
        exchange = str(found[EXCHANGE].value)
        if not exchange or "${" in exchange:
            return
        try:
            session.call(lambda done: session.channel.exchange_declare(exchange, passive=True, callback=done))
        except (UnreachableError, ConnectError) as error:
            found[EXCHANGE].errors.append(str(error))

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self._config] * max_tasks
