"""Messages of streams as records: the keys of both sources, and the names of headers, which the sink knows, too. No I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sluiceway.api import Offset, Partition, SourceRecord
from sluiceway.config.definition import ConfigDef, ConfigKey, ConfigValue
from sluiceway.config.validators import Check, EnumText, NonEmptyString, OrNull
from sluiceway.connectors.keys import flag, text
from sluiceway.connectors.nats.connection import CONNECTION_KEYS, Server, server_of
from sluiceway.data import BYTES_SCHEMA, INT64_SCHEMA, OPTIONAL_BYTES_SCHEMA, STRING_SCHEMA, Header, Headers, Schema
from sluiceway.errors import ConfigError, DataError

if TYPE_CHECKING:
    from nats.aio.msg import Msg

    from sluiceway.connectors.nats.pulls import Delivery

FILTER, TOPIC, VALUES, HEADERS = "nats.subject.filter", "kafka.topic", "nats.values", "nats.headers.enabled"
STREAM_PLACEHOLDER, SUBJECT_PLACEHOLDER = "${stream}", "${subject}"
RECORDS = "Records"
STREAM_HEADER, SEQUENCE_HEADER, DELIVERIES_HEADER = "nats.stream", "nats.sequence", "nats.deliveries"
OWN_HEADERS = (STREAM_HEADER, SEQUENCE_HEADER, DELIVERIES_HEADER)
"""The headers of records that say where a message was, and are none of the message's."""
_NOT_IN_TOPICS = re.compile(r"[^a-zA-Z0-9._-]")
_NOT_IN_NAMES = re.compile(r"[\s.*>/\\]")
_MOST_IN_TOPICS = 249
_MILLION = 1_000_000


def check_names(name: str, value: ConfigValue) -> None:
    """Refuse names that no stream and no consumer can have."""
    names = value if isinstance(value, list) else [value]
    if not names:
        raise ConfigError(name, None, "must not be empty")
    for each in map(str, names):
        if not each or _NOT_IN_NAMES.search(each):
            raise ConfigError(name, each, "must be a name, which has no dots, spaces, slashes, and wildcards")


def _check_filter(name: str, value: ConfigValue) -> None:
    parts = str(value).split(".")
    for number, part in enumerate(parts):
        is_wild = part == "*" or (part == ">" and number == len(parts) - 1)
        if not part or re.search(r"\s", part) or (not is_wild and set(part) & set("*>")):
            raise ConfigError(
                name, value, "must be a subject, in which * stands for a token, and > at the end for all further ones"
            )


def source_keys(group: str, filter_doc: str) -> list[ConfigKey]:
    """Return the keys that both sources have beside the names of streams."""
    return [
        *CONNECTION_KEYS,
        text(
            name=FILTER,
            default=None,
            validator=OrNull(Check(_check_filter, "a subject with or without wildcards")),
            group=group,
            doc=filter_doc,
        ),
        text(
            name=TOPIC,
            default=STREAM_PLACEHOLDER,
            validator=NonEmptyString(),
            group=RECORDS,
            doc=f"The topic; {STREAM_PLACEHOLDER} is the stream's name, {SUBJECT_PLACEHOLDER} the message's subject.",
        ),
        text(
            name=VALUES,
            default="bytes",
            validator=EnumText("bytes", "string"),
            group=RECORDS,
            doc="The type of values: bytes, for ByteArrayConverter, or string. A payload that is not UTF-8 is a bad record then, "
            "handled by errors.tolerance.",
        ),
        flag(
            name=HEADERS,
            default=True,
            group=RECORDS,
            doc=f"Whether records have the headers of messages, and {', '.join(OWN_HEADERS)}.",
        ),
    ]


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The server, the messages to read, and the form of their records."""

    server: Server
    subject: str | None
    topic: str
    as_bytes: bool
    headers: bool


def source_options(definition: ConfigDef, config: Mapping[str, str]) -> SourceOptions:
    """Return the options of a config. Raises ConfigError."""
    values = definition.parse(config)
    subject = values[FILTER]
    return SourceOptions(
        server=server_of(values),
        subject=None if subject is None else str(subject),
        topic=str(values[TOPIC]),
        as_bytes=str(values[VALUES]).lower() == "bytes",
        headers=bool(values[HEADERS]),
    )


def topic_conflicts(values: Mapping[str, ConfigValue], streams: Sequence[str]) -> dict[str, str]:
    """Return an error of ``kafka.topic`` if it has the name of a stream that no topic can have."""
    odd = [each for each in streams if _NOT_IN_TOPICS.search(each)]
    if odd and STREAM_PLACEHOLDER in str(values[TOPIC]):
        return {TOPIC: f"cannot have the name of {odd[0]}: Kafka's topics have letters, digits, '.', '_', and '-' only"}
    return {}


class Records:
    """Makes records of the messages of a stream."""

    def __init__(self, options: SourceOptions, stream: str) -> None:
        self._stream = stream
        self._topic = options.topic.replace(STREAM_PLACEHOLDER, stream)
        self._by_subject = SUBJECT_PLACEHOLDER in options.topic
        self._as_bytes = options.as_bytes
        self._headers = options.headers

    def record(
        self, message: Msg, delivery: Delivery, partition: Partition | None = None, offset: Offset | None = None
    ) -> SourceRecord:
        """Return the record of a message. Raises DataError for a text that is not UTF-8, or a subject that no topic can have."""
        name = f"The message {delivery.sequence} of stream {self._stream}"
        value: Any = message.data
        if not self._as_bytes:
            try:
                value = value.decode()
            except UnicodeDecodeError as error:
                raise DataError(f"{name} is not UTF-8 ({error}). Set {VALUES}=bytes.") from error
        if not message.subject.isascii() and (message.subject.encode(errors="replace").decode() != message.subject):
            raise DataError(f"{name} has a subject that is not UTF-8.")
        topic = self._topic
        if self._by_subject:
            topic = topic.replace(SUBJECT_PLACEHOLDER, message.subject)
            if _NOT_IN_TOPICS.search(topic) or len(topic) > _MOST_IN_TOPICS:
                raise DataError(
                    f"{name} has the subject {message.subject[:_MOST_IN_TOPICS]}, which cannot be in the name of a topic of "
                    f"Kafka. Set {TOPIC} without {SUBJECT_PLACEHOLDER}."
                )
        schema = BYTES_SCHEMA if self._as_bytes else STRING_SCHEMA
        return self._made(topic, message, delivery, value, schema, message.subject, partition, offset)

    def raw(
        self, message: Msg, delivery: Delivery, partition: Partition | None = None, offset: Offset | None = None
    ) -> SourceRecord:
        """Return the record of a message that ``record`` cannot read, for the dead letter queue."""
        key = message.subject.encode(errors="replace").decode()
        return self._made(self._topic, message, delivery, message.data, OPTIONAL_BYTES_SCHEMA, key, partition, offset)

    def _made(
        self,
        topic: str,
        message: Msg,
        delivery: Delivery,
        value: Any,
        schema: Schema,
        key: str,
        partition: Partition | None,
        offset: Offset | None,
    ) -> SourceRecord:
        return SourceRecord(
            partition,
            offset,
            topic,
            value,
            schema,
            key,
            STRING_SCHEMA,
            timestamp=delivery.time // _MILLION,
            headers=self._headers_of(message, delivery) if self._headers else (),
        )

    def _headers_of(self, message: Msg, delivery: Delivery) -> Headers:
        own = (
            Header(STREAM_HEADER, self._stream, STRING_SCHEMA),
            Header(SEQUENCE_HEADER, delivery.sequence, INT64_SCHEMA),
            Header(DELIVERIES_HEADER, delivery.times, INT64_SCHEMA),
        )
        if message.headers is None:
            return own
        pairs: Sequence[tuple[str, str | bytes]] = message.headers.pairs  # type: ignore[attr-defined] # MessageHeaders
        return (*own, *(Header(name, value, STRING_SCHEMA if isinstance(value, str) else BYTES_SCHEMA) for name, value in pairs))
