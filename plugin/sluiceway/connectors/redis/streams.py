"""Streams of Redis: the keys of their sources, the ids and records of entries, and the sources' common connector."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sluiceway.api import Offset, Partition, SourceConnector, SourceRecord
from sluiceway.config.definition import ConfigDef, ConfigKey, ConfigValue, Importance, Type, ValidatedValue
from sluiceway.config.validators import Check, EnumText, ListRule
from sluiceway.connectors.keys import text, whole
from sluiceway.connectors.redis.connection import CONNECTION_KEYS, RedisConnector, Server, server_of
from sluiceway.data import BYTES_SCHEMA, OPTIONAL_BYTES_SCHEMA, STRING_SCHEMA, Schema, Struct
from sluiceway.errors import ConfigError, ConnectError, DataError

if TYPE_CHECKING:
    from redis import Redis

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
    """The streams of a source, and the form of its records."""

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
        """Return a record of an entry that cannot be read, for the dead letter queue: its fields in lines."""
        value = b"\n".join(b"%b=%b" % each for each in zip(fields[::2], fields[1::2], strict=True))
        topic = self._topics[stream]
        return SourceRecord(
            partition, offset, topic, value, OPTIONAL_BYTES_SCHEMA, id_, STRING_SCHEMA, timestamp=timestamp_of(id_)
        )


def stream_info(client: Redis, name: str) -> Mapping[str, Any] | None:
    """Return the state of a stream by XINFO; None if there is none. Raises ConnectError for a key of another type."""
    from redis.exceptions import ResponseError

    try:
        found: Any = client.xinfo_stream(name)
    except ResponseError as error:
        if "no such key" in str(error):
            return None
        if str(error).startswith("WRONGTYPE"):
            raise ConnectError(f"The key {name} is no stream. Change {STREAMS}.") from error
        raise
    return {each.decode() if isinstance(each, bytes) else each: value for each, value in found.items()}


def last_entry(about: Mapping[str, Any]) -> Entry:
    """Return the id of the newest entry that a stream ever had."""
    return Entry.parse(about["last-generated-id"].decode())


class StreamSourceConnector(RedisConnector, SourceConnector):
    """Base of the sources of streams."""

    @classmethod
    def conflicts(cls, values: Mapping[str, ConfigValue], config: Mapping[str, str]) -> dict[str, str]:
        streams = values[STREAMS]
        assert isinstance(streams, list)  # noqa: S101 (parsed as such)
        odd = [str(each) for each in streams if not re.fullmatch(r"[a-zA-Z0-9._-]+", str(each))]
        if odd and TOPIC_PLACEHOLDER in str(values[TOPIC]):
            takes = "Kafka's topics have letters, digits, '.', '_', and '-' only"
            return {TOPIC: f"cannot have the name of stream {odd[0]}: {takes}"}
        return {}

    @classmethod
    def try_server(cls, client: Redis, found: Mapping[str, ValidatedValue]) -> None:
        streams = found[STREAMS]
        assert isinstance(streams.value, list)  # noqa: S101 (parsed as such)
        for name in streams.value:
            try:
                stream_info(client, str(name))
            except ConnectError as error:
                streams.errors.append(str(error))
