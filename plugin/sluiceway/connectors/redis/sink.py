"""RedisSinkConnector and its task: write records to streams, strings, hashes and lists of Redis, in pipelines."""

from __future__ import annotations

import enum
import functools
import logging
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from sluiceway.api import DONE, BatchLimits, BatchSinkTask, Outcome, SinkConnector, SinkRecord, WriteResult
from sluiceway.config.definition import ConfigDef, ConfigKey, ConfigValue, Importance, Type
from sluiceway.config.validators import EnumText, NonEmptyString, OrNull, Range
from sluiceway.connectors.keys import text, unreachable_key, unreachable_seconds, whole
from sluiceway.connectors.redis.connection import (
    CONNECTION_KEYS,
    RedisConnector,
    Server,
    is_busy,
    opened,
    reason_of,
    redis_errors,
    server_of,
)
from sluiceway.connectors.redis.streams import Entry
from sluiceway.connectors.repeats import repeats
from sluiceway.connectors.simple_values import record_name, required_bytes
from sluiceway.data import Struct
from sluiceway.errors import ConnectError, DataError

if TYPE_CHECKING:
    from redis import Redis

log = logging.getLogger(__name__)

COMMAND, KEY, SEPARATOR, IDS, MOST_LENGTH = (
    "redis.command",
    "redis.key",
    "redis.separator",
    "redis.stream.ids",
    "redis.stream.maxlen",
)
BATCH = "batch.size"
TOPIC_PLACEHOLDER, PARTITION_PLACEHOLDER = "${topic}", "${partition}"
_WRITES = "Writes"
_KNOWN_KEYS = 1000
_SMALLER_ID = "equal or smaller"


class Command(enum.Enum):
    """The commands that write records."""

    XADD = "XADD"
    SET = "SET"
    HSET = "HSET"
    RPUSH = "RPUSH"

    @property
    def by_key(self) -> bool:
        """Whether the record's key is part of the Redis key, so that a newer record replaces an older one."""
        return self in (Command.SET, Command.HSET)


CONFIG = ConfigDef(
    [
        *CONNECTION_KEYS,
        text(
            name=COMMAND,
            default=Command.XADD.value,
            validator=EnumText(*(each.value for each in Command)),
            importance=Importance.HIGH,
            group=_WRITES,
            doc="XADD: an entry of a stream, with the fields of the record's value. SET: a string. HSET: a hash with the "
            "fields of the record's value, to which a newer record adds. RPUSH: an item at the end of a list. A record without a "
            "value deletes the key with SET and HSET.",
        ),
        text(
            name=KEY,
            default=TOPIC_PLACEHOLDER,
            validator=NonEmptyString(),
            importance=Importance.HIGH,
            group=_WRITES,
            doc=f"The stream, the list, or what stands before the record's key with SET and HSET. {TOPIC_PLACEHOLDER} is the "
            f"topic, {PARTITION_PLACEHOLDER} the partition.",
        ),
        text(name=SEPARATOR, default=":", group=_WRITES, doc="What stands between redis.key and the record's key."),
        text(
            name=IDS,
            default="auto",
            validator=EnumText("auto", "offset"),
            group=_WRITES,
            doc="The ids of the entries of streams. auto: Redis makes them; records that come again after a crash are added "
            f"again. offset: the record's offset plus 1, so that they are not. Each partition then has its own stream: "
            f"{KEY} needs {TOPIC_PLACEHOLDER} and {PARTITION_PLACEHOLDER}, which are those that were read, before transforms.",
        ),
        ConfigKey(
            name=MOST_LENGTH,
            type=Type.LONG,
            default=None,
            validator=OrNull(Range(1, 2**53)),
            importance=Importance.MEDIUM,
            group=_WRITES,
            doc="The most entries of a stream, about: older ones are trimmed. By default all are kept.",
        ),
        whole(BATCH, 1000, 1, _WRITES, "The most records of a pipeline."),
        unreachable_key(_WRITES, "a server"),
    ]
)


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """The server, and the form of the keys and values there."""

    server: Server
    command: Command
    key: str
    separator: str
    ids_of_offsets: bool
    most_length: int | None
    limits: BatchLimits

    def key_of(self, topic: str, partition: int) -> bytes:
        """Return the key of a partition's records, without that of the record."""
        return self.key.replace(TOPIC_PLACEHOLDER, topic).replace(PARTITION_PLACEHOLDER, str(partition)).encode()


def sink_options(config: Mapping[str, str]) -> SinkOptions:
    """Return the options of a config. Raises ConfigError."""
    values = CONFIG.parse(config)
    longest = values[MOST_LENGTH]
    return SinkOptions(
        server=server_of(values),
        command=Command(str(values[COMMAND]).upper()),
        key=str(values[KEY]),
        separator=str(values[SEPARATOR]),
        ids_of_offsets=str(values[IDS]).lower() == "offset",
        most_length=None if longest is None else int(str(longest)),
        limits=BatchLimits(int(str(values[BATCH])), unreachable=unreachable_seconds(values)),
    )


def conflicts(values: Mapping[str, ConfigValue]) -> dict[str, str]:
    """Return the errors of keys that conflict, by the key to change."""
    problems: dict[str, str] = {}
    needed = {TOPIC_PLACEHOLDER, PARTITION_PLACEHOLDER}
    if str(values[IDS]).lower() == "offset" and not all(each in str(values[KEY]) for each in needed):
        problems[KEY] = (
            f"needs {TOPIC_PLACEHOLDER} and {PARTITION_PLACEHOLDER} with {IDS}=offset, because ids must rise within a stream"
        )
    for name in (IDS, MOST_LENGTH):
        given = str(values[name]).lower() == "offset" if name == IDS else values[name] is not None
        if given and str(values[COMMAND]).upper() != Command.XADD.value:
            problems[name] = f"is for {COMMAND}=XADD only"
    return problems


class Write(NamedTuple):
    """A command. ``value`` is None for a deletion; ``entry`` is the id that the record determines."""

    key: bytes
    value: bytes | Mapping[bytes, bytes] | None
    entry: Entry | None = None


class RedisSinkTask(BatchSinkTask[Write]):
    """Writes records in pipelines.

    Those of streams and lists are transactions, so that a server that is full or dies takes all of a pipeline or nothing of it,
    and never a later record without an earlier one.
    """

    _client: Redis | None = None

    def start(self, config: Mapping[str, str]) -> None:
        self._options = options = sink_options(config)
        self.limits = options.limits
        self._numbers: dict[int, int] = {}  # of the records that transforms made of one, by the records' identities
        self._passed_over = 0
        self._key = functools.lru_cache(_KNOWN_KEYS)(options.key_of)
        self._client = opened(options.server)

    def stop(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def put(self, records: Sequence[SinkRecord]) -> None:
        if self._options.ids_of_offsets:
            self._numbers = repeats(records)
        super().put(records)
        self._numbers.clear()

    def prepare(self, record: SinkRecord) -> Write | None:
        try:
            return self._write_of(record)
        except (UnicodeError, ValueError, ArithmeticError) as error:
            raise DataError(f"{record_name(record)} cannot be written to Redis: {error}") from error

    def _write_of(self, record: SinkRecord) -> Write | None:
        options = self._options
        topic, partition = record.topic, record.kafka_partition
        if options.ids_of_offsets:
            topic, partition = record.original_topic_partition
        key = self._key(topic, partition)
        if options.command.by_key:
            if record.key is None:
                raise DataError(f"{COMMAND}={options.command.value} needs a key, and {record_name(record)} has none.")
            key += options.separator.encode() + required_bytes(record.key, record, "key")
            if record.value is None:
                return Write(key, None)
        elif record.value is None:
            raise DataError(f"{COMMAND}={options.command.value} needs a value, and {record_name(record)} has none.")
        if options.command in (Command.SET, Command.RPUSH):
            return Write(key, required_bytes(record.value, record, "value"))
        fields = _fields(record)
        if not fields:
            raise DataError(f"{record_name(record)} has no fields with a value.")
        if not options.ids_of_offsets:
            return Write(key, fields)
        return Write(key, fields, Entry((record.original_kafka_offset + 1, self._numbers.get(id(record), 0))))

    def order_key(self, item: Write) -> Hashable:
        return item.key

    def size_of(self, item: Write) -> int:
        return len(item.key)

    def write(self, items: Sequence[Write]) -> Sequence[WriteResult]:
        from redis.exceptions import ExecAbortError, ResponseError

        client = self._opened()
        with redis_errors(self._options.server):
            try:
                answers = self._pipelined(client, items)
            except ResponseError as error:  # a transaction was refused as a whole
                if not is_busy(error) and not isinstance(error, ExecAbortError):
                    raise
                return [WriteResult(Outcome.RETRY, reason_of(error))] * len(items)
            return [self._result(client, item, answer) for item, answer in zip(items, answers, strict=True)]

    def metrics(self) -> Mapping[str, float]:
        """Return how many records with ids of offsets the streams did not have, and could not take any more."""
        return {**super().metrics(), "entries-passed-over": self._passed_over}

    def _pipelined(self, client: Redis, items: Sequence[Write]) -> Sequence[Any]:
        """Return an answer or an error for each command."""
        options = self._options
        with client.pipeline(transaction=not options.command.by_key) as pipeline:
            for item in items:
                if item.value is None:
                    pipeline.delete(item.key)
                elif options.command is Command.SET:
                    pipeline.set(item.key, item.value)  # type: ignore[arg-type]
                elif options.command is Command.RPUSH:
                    pipeline.rpush(item.key, item.value)  # type: ignore[arg-type]
                elif options.command is Command.HSET:
                    pipeline.hset(item.key, mapping=item.value)  # type: ignore[arg-type]
                else:
                    id_ = "*" if item.entry is None else str(item.entry)
                    pipeline.xadd(item.key, item.value, id=id_, maxlen=options.most_length)  # type: ignore[arg-type]
            answers: Sequence[Any] = pipeline.execute(raise_on_error=False)
            return answers

    def _result(self, client: Redis, item: Write, answer: Any) -> WriteResult:
        from redis.exceptions import NoPermissionError

        if not isinstance(answer, Exception):
            return DONE
        if isinstance(answer, NoPermissionError):
            raise answer
        if is_busy(answer):
            return WriteResult(Outcome.RETRY, reason_of(answer))
        if item.entry is not None and _SMALLER_ID in str(answer):
            return self._repeated(client, item, item.entry)
        return WriteResult(Outcome.REFUSED, reason_of(answer))

    def _repeated(self, client: Redis, item: Write, entry: Entry) -> WriteResult:
        """Return whether an entry whose id is not new was written before, and may have been trimmed or deleted since."""
        found: Any = client.xrange(item.key, str(entry), str(entry))
        name = item.key.decode(errors="replace")
        if not found:
            if not self._passed_over:
                log.warning(
                    "Stream %s has newer entries than %s, and not this one: it is taken for one that was written before, and "
                    "trimmed or deleted since. Further ones are counted in entries-passed-over. If the topic was created again, "
                    "set another %s.",
                    *(name, entry, KEY),
                )
            self._passed_over += 1
        elif dict(found[0][1]) != item.value:
            return WriteResult(
                Outcome.REFUSED,
                f"stream {name} has another entry at the id of the record's offset. Was the topic created again, or does "
                f"something else write to the stream? Set another {KEY}.",
            )
        return DONE

    def _opened(self) -> Redis:
        if self._client is None:
            raise ConnectError("The task has not been started. Call start() first.")
        return self._client


def _fields(record: SinkRecord) -> dict[bytes, bytes]:
    """Return the fields of a value that are not null."""
    value = record.value
    if not isinstance(value, (dict, Mapping)):  # Mapping alone takes its time
        raise DataError(f"The value of {record_name(record)} has no fields: it is {type(value).__name__}. HoistField makes one.")
    names: Any = [field.name for field in value.schema.fields] if isinstance(value, Struct) else value
    return {str(name).encode(): required_bytes(value[name], record, f"field {name}") for name in names if value[name] is not None}


class RedisSinkConnector(RedisConnector, SinkConnector):
    """Writes records to Redis: entries of streams, strings, hashes, or items of lists."""

    task_class = RedisSinkTask

    @classmethod
    def config_def(cls) -> ConfigDef:
        return CONFIG

    @classmethod
    def conflicts(cls, values: Mapping[str, ConfigValue], config: Mapping[str, str]) -> Mapping[str, str]:
        return conflicts(values)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self._config] * max_tasks
