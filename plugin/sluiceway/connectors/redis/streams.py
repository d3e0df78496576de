"""Entries of Redis streams: the keys of their sources, their ids, and their records. No I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sluiceway.api import Offset, Partition, SourceRecord
from sluiceway.config.definition import ConfigDef, ConfigKey, ConfigValue, Importance, Type
from sluiceway.config.validators import Check, EnumText, ListRule
from sluiceway.connectors.redis.connection import CONNECTION_KEYS, Server, server_of, text, whole
from sluiceway.data import BYTES_SCHEMA, OPTIONAL_BYTES_SCHEMA, STRING_SCHEMA, Schema, Struct
from sluiceway.errors import ConfigError, DataError

STREAMS, OFFSET, TOPIC, VALUES, BATCH = (
    "redis.stream.name",
    "redis.stream.offset",
    "topic",
    "redis.stream.values",
    "batch.size",
)
STREAM_GROUP, RECORDS = "Streams", "Records"
BEGINNING, END = "0-0", "$"
TOPIC_PLACEHOLDER = "${stream}"

_ID = re.compile(r"(\d{1,20})(?:-(\d{1,20}))?")
_MOST = 2**64 - 1
_FIRST_TIME, _LAST_TIME = 946_684_800_000, 32_503_680_000_000  # the years 2000 and 3000, in milliseconds


class Entry(tuple[int, int]):
    """The id of an entry, which orders the entries of a stream: milliseconds, and a number within these."""

    __slots__ = ()

    @classmethod
    def parse(cls, id_: str) -> Entry:
        """Return an id such as 1700000000000-0. Raises ValueError."""
        found = _ID.fullmatch(id_)
        parts = (int(found[1]), int(found[2] or 0)) if found else (_MOST + 1, 0)
        if max(parts) > _MOST:
            raise ValueError(f"{id_!r} is no id of an entry, such as 1700000000000-0")
        return cls(parts)

    def __str__(self) -> str:
        return f"{self[0]}-{self[1]}"


def timestamp_of(id_: str) -> int | None:
    """Return the time of an entry in milliseconds; None if its id, which may be given by its writer, is none."""
    time = int(id_.partition("-")[0])
    return time if _FIRST_TIME <= time < _LAST_TIME else None


def _check_offset(name: str, value: ConfigValue) -> None:
    if value != END:
        try:
            Entry.parse(str(value))
        except ValueError as error:
            raise ConfigError(name, value, f"{error}, nor {END} for the end") from error


def stream_keys(where: str) -> list[ConfigKey]:
    """Return the keys that both sources have. ``where`` says when they begin at ``redis.stream.offset``."""
    return [
        *CONNECTION_KEYS,
        ConfigKey(
            name=STREAMS,
            type=Type.LIST,
            validator=ListRule(allow_empty=False),
            importance=Importance.HIGH,
            group=STREAM_GROUP,
            doc="The streams, separated by commas. One that does not exist yet is waited for.",
        ),
        text(
            name=OFFSET,
            default=BEGINNING,
            validator=Check(_check_offset, "an id, or $"),
            group=STREAM_GROUP,
            doc=f"After which entry to begin {where}: an id, {BEGINNING} for the beginning, or {END} for the end.",
        ),
        whole(BATCH, 500, 1, STREAM_GROUP, "The most entries of each stream that are read at once."),
        text(
            name=TOPIC,
            default=TOPIC_PLACEHOLDER,
            importance=Importance.HIGH,
            group=RECORDS,
            doc=f"The topic; {TOPIC_PLACEHOLDER} is the stream's name.",
        ),
        text(
            name=VALUES,
            default="string",
            validator=EnumText("string", "bytes"),
            importance=Importance.LOW,
            group=RECORDS,
            doc="The type of the values of an entry's fields. string: a value that is not UTF-8 is a bad record, handled by "
            "errors.tolerance.",
        ),
    ]


def _schema(values: Schema) -> Schema:
    fields = {"stream": STRING_SCHEMA, "id": STRING_SCHEMA, "body": Schema.map(STRING_SCHEMA, values)}
    return Schema.struct(fields, name="sluiceway.redis.Entry")


STRINGS, BYTES = _schema(STRING_SCHEMA), _schema(BYTES_SCHEMA)


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """What the sources read, and what they make of it."""

    server: Server
    streams: Sequence[str]
    begin: str
    most: int
    topic: str
    as_bytes: bool


def stream_options(definition: ConfigDef, config: Mapping[str, str]) -> StreamOptions:
    """Return the options of a config. Raises ConfigError."""
    values = definition.parse(config)
    streams = values[STREAMS]
    assert isinstance(streams, list)  # noqa: S101 (parsed as such)
    return StreamOptions(
        server=server_of(values),
        streams=[str(each) for each in streams],
        begin=str(values[OFFSET]),
        most=int(str(values[BATCH])),
        topic=str(values[TOPIC]),
        as_bytes=str(values[VALUES]).lower() == "bytes",
    )


Fields = Sequence[bytes]
"""The names and values of an entry, in turn."""


class Records:
    """Makes records of entries."""

    def __init__(self, options: StreamOptions) -> None:
        self._options = options
        self._schema = BYTES if options.as_bytes else STRINGS
        self._topics = {each: options.topic.replace(TOPIC_PLACEHOLDER, each) for each in options.streams}

    def record(self, stream: str, id_: str, fields: Fields, partition: Partition | None, offset: Offset | None) -> SourceRecord:
        """Return the record of an entry. Raises DataError if it has a text that is not UTF-8, or a name twice."""
        names, values = fields[::2], fields[1::2]
        try:
            if self._options.as_bytes:
                body: dict[str, Any] = {name.decode(): value for name, value in zip(names, values, strict=True)}
            else:
                body = {name.decode(): value.decode() for name, value in zip(names, values, strict=True)}
        except UnicodeDecodeError as error:
            advice = "Names of fields must be." if self._options.as_bytes else f"Set {VALUES}=bytes if it is in a value."
            raise DataError(f"The entry {id_} of stream {stream} is not UTF-8 ({error}). {advice}") from error
        if len(body) < len(names):
            raise DataError(f"The entry {id_} of stream {stream} has a field twice, which a map cannot have.")
        schema, topic = self._schema, self._topics[stream]
        value = Struct.of(schema, [stream, id_, body])
        return SourceRecord(partition, offset, topic, value, schema, id_, STRING_SCHEMA, timestamp=timestamp_of(id_))

    def raw(self, stream: str, id_: str, fields: Fields, partition: Partition | None, offset: Offset | None) -> SourceRecord:
        """Return a record of an entry that cannot be read: its fields as Redis sent them, in lines, for the dead letter queue."""
        value = b"\n".join(b"%b=%b" % each for each in zip(fields[::2], fields[1::2], strict=True))
        topic = self._topics[stream]
        return SourceRecord(
            partition, offset, topic, value, OPTIONAL_BYTES_SCHEMA, id_, STRING_SCHEMA, timestamp=timestamp_of(id_)
        )


def topic_problems(values: Mapping[str, ConfigValue]) -> dict[str, str]:
    """Return the error of a topic whose name would be that of a stream that Kafka does not take, by the key to change."""
    streams = values[STREAMS]
    assert isinstance(streams, list)  # noqa: S101 (parsed as such)
    odd = [str(each) for each in streams if not re.fullmatch(r"[a-zA-Z0-9._-]+", str(each))]
    if odd and TOPIC_PLACEHOLDER in str(values[TOPIC]):
        return {TOPIC: f"cannot have the name of stream {odd[0]}: Kafka's topics have letters, digits, '.', '_', and '-' only"}
    return {}
