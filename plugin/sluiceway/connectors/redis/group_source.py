"""RedisGroupSourceConnector and its task: take the entries of streams as a consumer group, which has the position."""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from sluiceway.api import ExactlyOnceSupport, Message, QueueLimits, QueueSourceTask
from sluiceway.config.definition import ConfigDef, ConfigKey, ConfigValue, Importance, Type
from sluiceway.config.validators import NonEmptyString
from sluiceway.connectors.errors import UnreachableError
from sluiceway.connectors.keys import text, whole
from sluiceway.connectors.redis.connection import opened, redis_errors
from sluiceway.connectors.redis.streams import (
    BEGINNING,
    OFFSET,
    STREAM_GROUP,
    STREAMS,
    Entry,
    Records,
    StreamOptions,
    StreamSourceConnector,
    last_entry,
    stream_info,
    stream_keys,
    stream_options,
)
from sluiceway.errors import DataError

if TYPE_CHECKING:
    from redis import Redis

log = logging.getLogger(__name__)

GROUP, CONSUMER, IDLE, HELD = (
    "redis.stream.consumer.group",
    "redis.stream.consumer.name",
    "redis.stream.min.idle.ms",
    "redis.stream.held",
)
TASK_PLACEHOLDER = "${task}"
_TASK = "redis.stream.task"
_NEW, _FIRST = ">", BEGINNING

CONFIG = ConfigDef(
    [
        *stream_keys("if the group does not exist"),
        text(
            name=GROUP,
            default="kafka-consumer-group",
            validator=NonEmptyString(),
            importance=Importance.HIGH,
            group=STREAM_GROUP,
            doc="The consumer group. It is created in each stream, and with it the stream, if there is none.",
        ),
        text(
            name=CONSUMER,
            default=f"consumer-{TASK_PLACEHOLDER}",
            validator=NonEmptyString(),
            group=STREAM_GROUP,
            doc=f"The name of a task in the group; {TASK_PLACEHOLDER} is its number. A task that starts again first takes the "
            "entries that were delivered to its name and not acknowledged.",
        ),
        whole(
            IDLE,
            60_000,
            1000,
            STREAM_GROUP,
            "Milliseconds after which an entry that was delivered to another consumer of the group, and not acknowledged, is "
            "taken over. Tasks that run keep theirs.",
        ),
        whole(HELD, 10_000, 1, STREAM_GROUP, "The most entries of a task that Kafka does not have yet. So many may be doubled."),
        ConfigKey(name=_TASK, type=Type.INT, default=0, importance=Importance.LOW, internal=True, doc="The task's number."),
    ]
)


@dataclass(frozen=True, slots=True)
class GroupOptions:
    """The group, and a task's name in it. ``idle`` is in milliseconds."""

    streams: StreamOptions
    group: str
    consumer: str
    idle: int
    held: int


def options_of(config: Mapping[str, str]) -> GroupOptions:
    """Return the options of a config. Raises ConfigError."""
    values = CONFIG.parse(config)
    return GroupOptions(
        streams=stream_options(CONFIG, config),
        group=str(values[GROUP]),
        consumer=str(values[CONSUMER]).replace(TASK_PLACEHOLDER, str(values[_TASK])),
        idle=int(str(values[IDLE])),
        held=int(str(values[HELD])),
    )


class Pending(NamedTuple):
    """An entry that was delivered to the task."""

    stream: str
    id: str


class RedisGroupSourceTask(QueueSourceTask[Pending]):
    """Takes entries as a consumer of a group, and acknowledges them once Kafka has their records.

    It first takes what was delivered to its name before, then what other consumers have left for ``redis.stream.min.idle.ms``,
    and then new entries. What it holds counts as in work, whatever Kafka takes, because its idle time is set back.
    """

    acknowledges_in_order = False
    handles_outlive_connections = True

    _client: Redis | None = None

    def start(self, config: Mapping[str, str]) -> None:
        self._options = options = options_of(config)
        self._records = Records(options.streams)
        self._held: set[Pending] = set()
        self._newest: dict[str, Entry] = {}  # of the new entries that were delivered
        self._ends: dict[str, Entry] = {}  # of the streams at first, for bounded runs
        self._to_claim: dict[str, str] = {}  # streams to search, with the id to search from
        self._claim_at = time.monotonic()
        self._turn = self._gone = self._claimed = 0
        self.limits = QueueLimits(
            held=options.held,
            messages=options.streams.most * len(options.streams.streams),
            extend=options.idle / 3000,
        )
        super().start(config)

    def connect(self) -> None:
        options = self._options
        self._read_old_again()
        with redis_errors(options.streams.server):
            self._client = client = opened(options.streams.server)
            for stream in options.streams.streams:
                self._join(client, stream)

    def _join(self, client: Redis, stream: str) -> None:
        """Create the group unless there is one: where the config says, or behind what the task has taken if it was deleted."""
        from redis.exceptions import ResponseError

        options, about = self._options, stream_info(client, stream)
        newest = self._newest.get(stream)
        begin = options.streams.begin
        if newest is not None:
            begin = BEGINNING if about is None or last_entry(about) < newest else str(newest)
        try:
            client.xgroup_create(stream, options.group, id=begin, mkstream=True)
        except ResponseError as error:
            if not str(error).startswith("BUSYGROUP"):
                raise
        else:
            level = logging.INFO if newest is None else logging.WARNING
            what = "" if newest is None else ": the group or the stream was deleted while it was read"
            log.log(level, "Created the group %s of stream %s behind %s%s", options.group, stream, begin, what)
        self._ends.setdefault(stream, last_entry(about) if about else Entry((0, 0)))

    def reached_end(self) -> bool:
        """Return whether the streams are read up to the ends that they had at first."""
        read = all(self._newest.get(name, Entry((0, 0))) >= end for name, end in self._ends.items())
        return bool(self._ends) and read and not self._old and not self._to_claim

    def disconnect(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def receive(self, most: int, seconds: float) -> Sequence[Message[Pending]]:
        client, options = self._opened(), self._options
        streams = self._next_streams(most)
        share = max(1, min(most // len(streams), options.streams.most))
        with redis_errors(options.streams.server):
            if old := self._receive_old(client, share):
                return old
            if claimed := self._claim(client, share):
                return claimed
            found = self._group_read(client, dict.fromkeys(streams, _NEW), share, max(1, int(seconds * 1000)))
        messages: list[Message[Pending]] = []
        for name, entries in found:
            stream = name.decode()
            messages += self._messages(stream, entries)
            self._newest[stream] = Entry.parse(entries[-1][0].decode())
        return messages

    def _next_streams(self, most: int) -> list[str]:
        """Return all streams, or the next ones if fewer entries than streams may be taken."""
        streams = list(self._options.streams.streams)
        if most >= len(streams):
            return streams
        self._turn = (self._turn + most) % len(streams)
        return [*streams, *streams][self._turn : self._turn + most]

    def _group_read(self, client: Redis, positions: dict[Any, Any], most: int, block: int | None = None) -> Sequence[Any]:
        options = self._options
        found: Any = client.xreadgroup(options.group, options.consumer, positions, count=most, block=block)
        return found or ()

    def _read_old_again(self) -> None:
        """Read what was delivered to the task's name, and is not held, before anything else."""
        self._old: dict[str, str] = dict.fromkeys(self._options.streams.streams, _FIRST)

    def _receive_old(self, client: Redis, most: int) -> list[Message[Pending]]:
        """Return the next entries that were delivered to the task's name before; none after the last one."""
        while self._old:
            stream, after = next(iter(self._old.items()))
            entries = next((entries for _name, entries in self._group_read(client, {stream: after}, most)), ())
            if entries:
                self._old[stream] = entries[-1][0].decode()
            else:
                del self._old[stream]
            if messages := self._messages(stream, entries):
                return messages
        return []

    def _claim(self, client: Redis, most: int) -> list[Message[Pending]]:
        """Return entries that other consumers have left: the next ones of a stream, where a search is due."""
        options = self._options
        if not self._to_claim:
            if time.monotonic() < self._claim_at:
                return []
            self._to_claim = dict.fromkeys(options.streams.streams, _FIRST)
        stream, after = next(iter(self._to_claim.items()))
        answer: Any = client.xautoclaim(
            stream, options.group, options.consumer, min_idle_time=options.idle, start_id=after, count=most
        )
        self._to_claim[stream] = answer[0].decode()
        if self._to_claim[stream] == _FIRST:
            del self._to_claim[stream]
        if not self._to_claim:
            self._claim_at = time.monotonic() + options.idle / 2000
        entries = [each for each in answer[1] if each is not None and each[0] is not None]
        if len(entries) < len(answer[1]):  # deleted ones, which Redis 6 does not name
            self._old.setdefault(stream, _FIRST)
        messages = self._messages(stream, entries)
        self._claimed += len(messages)
        return messages

    def _messages(self, stream: str, entries: Sequence[Any]) -> list[Message[Pending]]:
        """Return the messages of entries that the task does not hold: a lost or a slow answer may deliver one twice."""
        messages: list[Message[Pending]] = []
        for id_, fields in entries:
            pending = Pending(stream, id_.decode())
            if pending not in self._held:
                self._held.add(pending)
                messages.append(self._message(pending, fields))
        return messages

    def _message(self, pending: Pending, fields: Sequence[bytes] | None) -> Message[Pending]:
        if not fields:  # it was deleted from the stream, and is still pending: an entry has fields
            self._gone += 1
            return Message(pending)
        try:
            return Message(pending, (self._records.record(*pending, fields, None, None),))
        except DataError as error:
            return Message(pending, bad=((self._records.raw(*pending, fields, None, None), error),))

    def acknowledge(self, handles: Sequence[Pending]) -> None:
        client, options = self._opened(), self._options
        with redis_errors(options.streams.server):
            for stream, ids in _by_stream(handles):
                client.xack(stream, options.group, *ids)
        self._held.difference_update(handles)

    def give_back(self, handles: Sequence[Pending]) -> None:
        """Forget entries: other consumers take them over after a while, or the task takes them when it reads again."""
        self._held.difference_update(handles)
        self._read_old_again()

    def extend(self, handles: Sequence[Pending]) -> None:
        client, options = self._opened(), self._options
        with redis_errors(options.streams.server):
            for stream, ids in _by_stream(handles):
                client.xclaim(stream, options.group, options.consumer, 0, ids, justid=True)

    def metrics(self) -> Mapping[str, float]:
        """Return the numbers of entries taken over from other consumers, and of those deleted while they were pending."""
        found = super().metrics()
        return {**found, "entries-claimed": self._claimed, "entries-deleted": self._gone} if found else found

    def _opened(self) -> Redis:
        if self._client is None:
            raise UnreachableError("The connection is lost")
        return self._client


def _by_stream(handles: Sequence[Pending]) -> list[tuple[str, list[Any]]]:
    ordered = sorted(handles, key=lambda each: each.stream)
    return [(stream, [each.id for each in group]) for stream, group in itertools.groupby(ordered, key=lambda each: each.stream)]


class RedisGroupSourceConnector(StreamSourceConnector):
    """Takes the entries of Redis streams as a consumer group: a record for each entry. All tasks share all streams."""

    task_class = RedisGroupSourceTask

    @classmethod
    def config_def(cls) -> ConfigDef:
        return CONFIG

    @classmethod
    def conflicts(cls, values: Mapping[str, ConfigValue], config: Mapping[str, str]) -> dict[str, str]:
        problems = super().conflicts(values, config)
        if TASK_PLACEHOLDER not in str(values[CONSUMER]) and config.get("tasks.max", "1").strip() not in ("", "1"):
            problems[CONSUMER] = f"needs {TASK_PLACEHOLDER} with several tasks: each must have a name of its own"
        return problems

    @classmethod
    def start_effects(cls, config: Mapping[str, str]) -> str:
        return "it creates the consumer group and takes entries that other consumers of the group then do not get"

    @classmethod
    def position_elsewhere(cls, config: Mapping[str, str]) -> str:
        group, streams = config.get(GROUP) or CONFIG[GROUP].default, config.get(STREAMS, "")
        return (
            f"The position is that of the consumer group {group} in Redis. To read {streams} from another entry on, stop the "
            f"connector and set it there: XGROUP SETID STREAM {group} ID. {OFFSET} is only for a group that does not exist."
        )

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Return a config for each task, of which each takes what it can."""
        return [{**self._config, _TASK: str(number)} for number in range(max_tasks)]

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        # The group's position is not in Kafka's transaction. RedisStreamSource reads the same streams exactly once.
        return ExactlyOnceSupport.UNSUPPORTED
