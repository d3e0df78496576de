"""Messages of RabbitMQ as records: the keys of both sources, and the names of headers, which the sink knows, too. No I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import orjson

from sluiceway.api import Offset, Partition, SourceRecord
from sluiceway.config.definition import ConfigDef, ConfigKey, ConfigValue, Importance, Type, ValidatedValue
from sluiceway.config.validators import EnumText, ListRule
from sluiceway.connectors.keys import flag, text
from sluiceway.connectors.rabbitmq.connection import CONNECTION_KEYS, Server, server_of
from sluiceway.data import (
    BOOLEAN_SCHEMA,
    BYTES_SCHEMA,
    FLOAT64_SCHEMA,
    INT64_SCHEMA,
    OPTIONAL_BYTES_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
    Header,
    Schema,
)
from sluiceway.errors import ConnectError, DataError

if TYPE_CHECKING:
    from pika.spec import BasicProperties

    from sluiceway.connectors.rabbitmq.session import Session

QUEUES, TOPIC, VALUES, HEADERS = "rabbitmq.queue", "kafka.topic", "rabbitmq.values", "rabbitmq.headers.enabled"
QUEUE_PLACEHOLDER = "${queue}"
RECORDS = "Records"

PREFIX = "rabbitmq."
"""The start of the name of a record's header that is a property or a header of a message, as in Confluent's connector."""

PROPERTIES = {
    name: f"{PREFIX}{name.replace('_', '.')}"
    for name in (
        *("content_type", "content_encoding", "delivery_mode", "priority", "correlation_id", "reply_to", "expiration"),
        *("message_id", "timestamp", "type", "user_id", "app_id"),
    )
}
"""The headers of a message's properties, by pika's name of the property."""

REDELIVER, EXCHANGE, ROUTING_KEY = f"{PREFIX}redeliver", f"{PREFIX}exchange", f"{PREFIX}routing.key"
STREAM_OFFSET = "x-stream-offset"
_LAST_TIME = 32_503_680_000  # the year 3000, in seconds


def source_keys(what: str) -> list[ConfigKey]:
    """Return the keys that both sources have. ``what`` is read, such as queues."""
    return [
        *CONNECTION_KEYS,
        ConfigKey(
            name=QUEUES,
            type=Type.LIST,
            validator=ListRule(allow_empty=False),
            importance=Importance.HIGH,
            group=what.capitalize(),
            doc=f"The {what}, separated by commas. They must exist: one that does not is waited for.",
        ),
        text(
            name=TOPIC,
            default=QUEUE_PLACEHOLDER,
            importance=Importance.HIGH,
            group=RECORDS,
            doc=f"The topic; {QUEUE_PLACEHOLDER} is the name of the queue or stream.",
        ),
        text(
            name=VALUES,
            default="bytes",
            validator=EnumText("bytes", "string"),
            group=RECORDS,
            doc="The type of values: bytes, for ByteArrayConverter, or string. A body that is not UTF-8 is a bad record then, "
            "handled by errors.tolerance.",
        ),
        flag(
            name=HEADERS,
            default=True,
            group=RECORDS,
            doc=f"Whether properties and headers of messages become headers of records, with names that begin with {PREFIX}",
        ),
    ]


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The queues or streams of a source, and the form of its records."""

    server: Server
    queues: Sequence[str]
    topic: str
    as_bytes: bool
    headers: bool


def source_options(definition: ConfigDef, config: Mapping[str, str]) -> SourceOptions:
    """Return the options of a config. Raises ConfigError."""
    values = definition.parse(config)
    queues = values[QUEUES]
    assert isinstance(queues, list)  # noqa: S101 (parsed as such)
    return SourceOptions(
        server=server_of(values),
        queues=tuple(map(str, queues)),
        topic=str(values[TOPIC]),
        as_bytes=str(values[VALUES]).lower() == "bytes",
        headers=bool(values[HEADERS]),
    )


class Records:
    """Makes records of the messages of a queue."""

    def __init__(self, options: SourceOptions, queue: str) -> None:
        self.queue = queue
        self._topic = options.topic.replace(QUEUE_PLACEHOLDER, queue)
        self._as_bytes = options.as_bytes
        self._headers = options.headers
        self._schema = BYTES_SCHEMA if options.as_bytes else STRING_SCHEMA

    def record(
        self,
        delivery: Any,
        properties: BasicProperties,
        body: bytes,
        partition: Partition | None = None,
        offset: Offset | None = None,
    ) -> SourceRecord:
        """Return the record of a message. Raises DataError for a text that is not UTF-8."""
        value: Any = body
        if not self._as_bytes:
            try:
                value = body.decode()
            except UnicodeDecodeError as error:
                name = f"message {properties.message_id or delivery.delivery_tag}"
                raise DataError(f"The {name} of {self.queue} is not UTF-8 ({error}). Set {VALUES}=bytes.") from error
        return self._made(delivery, properties, value, self._schema, partition, offset)

    def raw(
        self,
        delivery: Any,
        properties: BasicProperties,
        body: bytes,
        partition: Partition | None = None,
        offset: Offset | None = None,
    ) -> SourceRecord:
        """Return the record of a message that ``record`` cannot read, for the dead letter queue."""
        return self._made(delivery, properties, body, OPTIONAL_BYTES_SCHEMA, partition, offset)

    def _made(
        self,
        delivery: Any,
        properties: BasicProperties,
        value: Any,
        schema: Schema,
        partition: Partition | None,
        offset: Offset | None,
    ) -> SourceRecord:
        seconds = properties.timestamp
        return SourceRecord(
            partition,
            offset,
            self._topic,
            value,
            schema,
            properties.message_id,
            OPTIONAL_STRING_SCHEMA,
            timestamp=seconds * 1000 if seconds and 0 < seconds < _LAST_TIME else None,
            headers=headers_of(delivery, properties) if self._headers else (),
        )


def headers_of(delivery: Any, properties: BasicProperties) -> tuple[Header, ...]:
    """Return the properties and headers that a message has, and where it was published."""
    found = [
        Header(REDELIVER, bool(delivery.redelivered), BOOLEAN_SCHEMA),
        Header(EXCHANGE, delivery.exchange, STRING_SCHEMA),
        Header(ROUTING_KEY, delivery.routing_key, STRING_SCHEMA),
    ]
    given = vars(properties)
    for name, header in PROPERTIES.items():
        if (value := given.get(name)) is not None:
            found.append(_header(header, value))
    for name, value in (properties.headers or {}).items():
        found.append(_header(f"{PREFIX}{_text(name)}", value))
    return tuple(found)


def _text(name: object) -> str:
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)


def _header(name: str, value: Any) -> Header:
    """Return a header. Tables, arrays, and decimal numbers are texts."""
    if isinstance(value, str):
        return Header(name, value, STRING_SCHEMA)
    if isinstance(value, bool):
        return Header(name, value, BOOLEAN_SCHEMA)
    if isinstance(value, int):
        return Header(name, int(value), INT64_SCHEMA)
    if isinstance(value, float):
        return Header(name, value, FLOAT64_SCHEMA)
    if isinstance(value, bytes):
        return Header(name, value, BYTES_SCHEMA)
    if value is None:
        return Header(name, None, OPTIONAL_STRING_SCHEMA)
    if isinstance(value, (list, dict)):
        return Header(name, orjson.dumps(value, default=_plain, option=orjson.OPT_NON_STR_KEYS).decode(), STRING_SCHEMA)
    return Header(name, _plain(value), STRING_SCHEMA)


def _plain(value: Any) -> Any:
    """Return a value of a table that JSON has no form of."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, int):  # a subclass of pika's
        return int(value)
    return str(value)


def try_queues(session: Session, queues: ValidatedValue) -> None:
    """Add an error of the first queue that does not exist or that the user may not read."""
    assert isinstance(queues.value, list)  # noqa: S101 (parsed as such)
    for name in queues.value:
        try:
            session.count(str(name))
        except (ConnectionError, ConnectError) as error:
            queues.errors.append(str(error))
            return  # the channel is closed


def topic_conflicts(values: Mapping[str, ConfigValue]) -> dict[str, str]:
    """Return an error of ``kafka.topic`` if it has the name of a queue that no topic can have."""
    queues = values[QUEUES]
    assert isinstance(queues, list)  # noqa: S101 (parsed as such)
    odd = [str(each) for each in queues if not re.fullmatch(r"[a-zA-Z0-9._-]+", str(each))]
    if odd and QUEUE_PLACEHOLDER in str(values[TOPIC]):
        return {TOPIC: f"cannot have the name of {odd[0]}: Kafka's topics have letters, digits, '.', '_', and '-' only"}
    return {}
