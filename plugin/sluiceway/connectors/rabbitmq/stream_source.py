"""RabbitStreamSourceConnector and its task: read RabbitMQ's streams by offset, so that the position is in Kafka's offsets."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, NamedTuple

from sluiceway.api import (
    ExactlyOnceSupport,
    Offset,
    OffsetTarget,
    OffsetTargetKind,
    Partition,
    SourceConnector,
    SourceRecord,
    SourceTask,
)
from sluiceway.config.definition import ConfigDef, ConfigKey, ConfigValue, Importance, Type, ValidatedValue
from sluiceway.config.validators import Check, Range
from sluiceway.connectors.errors import RefusedError, UnreachableError
from sluiceway.connectors.keys import text, whole
from sluiceway.connectors.rabbitmq.connection import RabbitConnector
from sluiceway.connectors.rabbitmq.messages import (
    QUEUES,
    STREAM_OFFSET,
    Records,
    SourceOptions,
    source_keys,
    source_options,
    topic_conflicts,
    try_queues,
)
from sluiceway.connectors.rabbitmq.session import Session, opened
from sluiceway.connectors.shares import dealt
from sluiceway.errors import ConfigError, ConnectError, DataError, RetriableError

if TYPE_CHECKING:
    from pika.spec import BasicProperties


log = logging.getLogger(__name__)

BEGIN, PREFETCH, BATCH = "rabbitmq.stream.offset", "rabbitmq.prefetch.count", "batch.size"
STREAM, OFFSET = "stream", "offset"
_STREAMS = "Streams"
_FIRST, _LAST, _NEXT = "first", "last", "next"
_WAIT_SECONDS = 0.5
_EMPTY_SECONDS = 1.0  # between two looks at a stream that is empty, although its messages were read
_BEFORE_FIRST = -1


def _begin(value: str) -> str | int | datetime:
    """Return where to begin, in the form of a consumer's argument. Raises ValueError."""
    if value in (_FIRST, _LAST, _NEXT):
        return value
    if value.isascii() and value.isdigit():
        return int(value)
    found = datetime.fromisoformat(value.replace("Z", "+00:00"))
    return found if found.tzinfo else found.replace(tzinfo=timezone.utc)


def _check_begin(name: str, value: ConfigValue) -> None:
    try:
        _begin(str(value))
    except ValueError as error:
        message = f"must be {_FIRST}, {_LAST}, {_NEXT}, an offset, or a time such as 2026-01-31T12:00:00Z"
        raise ConfigError(name, value, message) from error


CONFIG = ConfigDef(
    [
        *source_keys("streams"),
        text(
            name=BEGIN,
            default=_FIRST,
            validator=Check(_check_begin, "first, last, next, an offset, or a time"),
            group=_STREAMS,
            doc="Where to begin if there is no offset: first, last (with the messages that were written together with the last "
            "one), next for new messages only, an offset, or a time such as 2026-01-31T12:00:00Z.",
        ),
        ConfigKey(
            name=PREFETCH,
            type=Type.INT,
            default=2000,
            validator=Range(1, 65535),
            importance=Importance.LOW,
            group=_STREAMS,
            doc="The most messages of each stream that the server sends ahead.",
        ),
        whole(BATCH, 1000, 1, _STREAMS, "The most messages that are handed over at once."),
    ]
)


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """The streams, and where to begin."""

    source: SourceOptions
    begin: str | int | datetime
    prefetch: int
    most: int


def options_of(config: Mapping[str, str]) -> StreamOptions:
    """Return the options of a config. Raises ConfigError."""
    values = CONFIG.parse(config)
    return StreamOptions(
        source=source_options(CONFIG, config),
        begin=_begin(str(values[BEGIN])),
        prefetch=int(str(values[PREFETCH])),
        most=int(str(values[BATCH])),
    )


class _Received(NamedTuple):
    stream: str
    offset: int
    delivery: Any
    properties: BasicProperties
    body: bytes


class RabbitStreamSourceTask(SourceTask):
    """Reads the messages of streams after the last one that Kafka has.

    Offsets rise by one, with gaps where the server has written notes of its own. A larger gap than that shows when the stream's
    first offset is behind it: then messages were removed unread.
    """

    _session: Session | None = None
    _missed = 0

    def start(self, config: Mapping[str, str]) -> None:
        self._options = options = options_of(config)
        self._name = str(self.context.configs.get("name", ""))
        self._streams = options.source.queues
        self._records = {name: Records(options.source, name) for name in self._streams}
        self._partitions: dict[str, Partition] = {name: {STREAM: name} for name in self._streams}
        stored = self.context.offset_storage_reader.offsets(list(self._partitions.values()))
        self._positions: dict[str, int] = {}  # the offset of the last message that was read, or of those before the first one
        for name, offset in zip(self._streams, stored, strict=True):
            if offset is not None:
                check_offset(offset)
                self._positions[name] = int(offset[OFFSET])
            elif isinstance(options.begin, int):
                self._positions[name] = options.begin - 1
        self._seen = {name: self._positions[name] for name, offset in zip(self._streams, stored, strict=True) if offset}
        self._ends: dict[str, int] = {}  # of the streams at first, for bounded runs
        self._received: deque[_Received] = deque()
        self._consumed: set[str] = set()
        self._look_again = 0.0
        self._unstored: set[str] = set()  # streams whose position has changed without a record
        self._asks = False  # the last poll returned nothing, so that the runtime asks for what is not stored
        self._attempts = 0

    def poll(self) -> Sequence[SourceRecord] | None:
        try:
            session = self._connected()
            if self._unstored and not self._asks:
                self._asks = True
                return None
            session.run(0 if self._received else _WAIT_SECONDS)
            return self._next_records(session) or None
        except UnreachableError as error:
            self._disconnect()
            raise RetriableError(str(error)) from error

    def _connected(self) -> Session:
        """Return the session, with a consumer of each stream that has messages."""
        if self._session is None:
            self._session = opened(self._options.source.server, self._name, self._attempts)
            self._attempts += 1
            self._session.prefetch(self._options.prefetch)
        if len(self._consumed) < len(self._streams) and time.monotonic() >= self._look_again:
            for name in self._streams:
                if name not in self._consumed and self._consume(self._session, name):
                    self._consumed.add(name)
            self._look_again = time.monotonic() + _EMPTY_SECONDS
        return self._session

    def _consume(self, session: Session, name: str) -> bool:
        """Begin to read a stream behind its position, and return whether it could be."""
        end = last_offset(session, name)
        self._ends.setdefault(name, _BEFORE_FIRST if end is None else end)
        seen = self._seen.get(name, _BEFORE_FIRST)
        if seen > _BEFORE_FIRST and end is None:
            return False  # it was deleted and created again, or its leader knows less than it had: what comes will show
        if end is not None and end < seen:
            raise ConnectError(
                f"Stream {name} ends at offset {end}, before {seen}, which was read last: RabbitMQ has lost data, or the stream "
                "was deleted and created again. To read what it has now, stop the connector and reset its offset: "
                f"sluiceway offsets reset {self.context.configs.get('name', 'NAME')}"
            )
        if name not in self._positions and self._options.begin == _NEXT:
            self._positions[name] = _BEFORE_FIRST if end is None else end
            self._note(name)
        position = self._positions.get(name)

        def on_message(delivery: Any, properties: BasicProperties, body: bytes) -> None:
            self._received.append(_Received(name, offset_of(properties), delivery, properties, body))
            session.wake()

        begin = self._options.begin if position is None else position + 1
        session.consume(name, on_message, x_stream_offset=begin)
        return True

    def _next_records(self, session: Session) -> list[SourceRecord]:
        records: list[SourceRecord] = []
        tag = 0
        for _ in range(min(self._options.most, len(self._received))):
            name, offset, delivery, properties, body = self._received.popleft()
            tag = delivery.delivery_tag
            position = self._positions.get(name)
            if position is not None:
                if offset <= position:
                    continue
                if offset > position + 1:
                    self._check_gap(session, name, position + 1, offset)
            self._positions[name] = self._seen[name] = offset
            partition, stored = self._partitions[name], {OFFSET: offset}
            try:
                records.append(self._records[name].record(delivery, properties, body, partition, stored))
            except DataError as error:
                self.context.report(self._records[name].raw(delivery, properties, body, partition, stored), error)
                self._note(name)  # no record has its offset
        if tag:
            session.channel.basic_ack(tag, multiple=True)  # so that the server sends more: a stream keeps its messages
        return records

    def _check_gap(self, session: Session, name: str, expected: int, offset: int) -> None:
        """Count the messages that were removed before they were read, if the stream begins behind the one that was expected."""
        first = first_offset(session, name)
        if first is None or first <= expected:
            return
        missed = min(first, offset) - expected
        self._missed += missed
        log.warning(
            "Stream %s: up to %d messages, from offset %d on, were removed by its retention before they were read",
            *(name, missed, expected),
        )

    def _note(self, name: str) -> None:
        self._unstored.add(name)
        self._asks = False

    def idle_offsets(self) -> Sequence[tuple[Partition, Offset | None]]:
        """Return ends that were found, and positions behind bad messages, for the next start."""
        changed, self._unstored = self._unstored, set()
        return [(self._partitions[name], {OFFSET: self._positions[name]}) for name in changed]

    @property
    def ended(self) -> bool | None:
        """True once all streams are read up to the ends that they had at first."""
        ends, positions = self._ends, self._positions
        return all(name in ends and ends[name] <= positions.get(name, _BEFORE_FIRST) for name in self._streams)

    def paused(self) -> None:
        """Close the connection, which would be lost for want of heartbeats."""
        self._disconnect()

    def metrics(self) -> Mapping[str, float]:
        """Return how many messages were removed unread, at most."""
        return {"messages-missed": self._missed}

    def stop(self) -> None:
        self._disconnect()

    def _disconnect(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            self._received.clear()
            self._consumed.clear()
            self._look_again = 0.0
            session.close()


def check_offset(offset: Offset) -> None:
    """Raise ConnectError for what is no offset of a stream."""
    number = offset.get(OFFSET)
    if set(offset) != {OFFSET} or not isinstance(number, int) or isinstance(number, bool) or not _BEFORE_FIRST <= number < 2**63:
        raise ConnectError(
            f'{dict(offset)} is no offset of a stream. An offset is {{"{OFFSET}": 1200}}, that of the last message read, '
            f"and {_BEFORE_FIRST} is before the first one."
        )


class RabbitStreamSourceConnector(RabbitConnector, SourceConnector):
    """Reads streams of RabbitMQ by offset: a record for each message. Each stream is read by one task."""

    task_class = RabbitStreamSourceTask

    @classmethod
    def config_def(cls) -> ConfigDef:
        return CONFIG

    @classmethod
    def conflicts(cls, values: Mapping[str, ConfigValue], config: Mapping[str, str]) -> Mapping[str, str]:
        return topic_conflicts(values)

    @classmethod
    def try_server(cls, session: Session, found: Mapping[str, ValidatedValue]) -> None:
        try_queues(session, found[QUEUES])

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        streams = options_of(self._config).source.queues
        return [{**self._config, QUEUES: ",".join(group)} for group in dealt(streams, max_tasks)]

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        return ExactlyOnceSupport.SUPPORTED

    def alter_offsets(self, config: Mapping[str, str], offsets: Sequence[tuple[Partition, Offset | None]]) -> bool:
        for partition, offset in offsets:
            if offset is None:
                continue
            if set(partition or ()) != {STREAM}:
                raise ConnectError(f'A partition is {{"{STREAM}": "orders"}}.')
            check_offset(offset)
        return True

    def find_offsets(
        self, config: Mapping[str, str], target: OffsetTarget, offsets: Sequence[tuple[Partition, Offset]]
    ) -> Sequence[tuple[Partition, Offset | None]]:
        """Return the offsets before a target. A time is exact to the messages that the server has written together."""
        options = options_of(config).source
        stored = {str(partition.get(STREAM)): offset for partition, offset in offsets}
        found: list[tuple[Partition, Offset | None]] = []
        with closing(opened(options.server, str(config.get("name", "")))) as session:
            for name in options.queues:
                end = last_offset(session, name)
                last = _BEFORE_FIRST if end is None else end
                if target.kind is OffsetTargetKind.EARLIEST:
                    position = _BEFORE_FIRST
                elif target.kind is OffsetTargetKind.LATEST:
                    position = last
                elif target.kind is OffsetTargetKind.TIMESTAMP:
                    at = offset_at(session, name, datetime.fromtimestamp(target.number / 1000, timezone.utc))
                    position = last if at is None else at - 1
                elif name in stored:
                    check_offset(stored[name])
                    position = max(_BEFORE_FIRST, min(last, int(stored[name][OFFSET]) + target.number))
                else:
                    continue
                found.append(({STREAM: name}, {OFFSET: position}))
        return found


def offset_of(properties: BasicProperties) -> int:
    """Return the offset of a stream's message."""
    headers: Any = properties.headers
    return int(headers[STREAM_OFFSET])


def first_offset(session: Session, stream: str) -> int | None:
    """Return the offset of the first message that the stream still has; None if it has none."""
    return min(_sent_at_once(session, stream, "first"), default=None)


def last_offset(session: Session, stream: str) -> int | None:
    """Return the offset of the last message; None if the stream has none."""
    return max(_sent_at_once(session, stream, "last"), default=None)  # all messages that were written together with it


def offset_at(session: Session, stream: str, time: datetime) -> int | None:
    """Return the offset of the first message of those that were written together at a time or later; None if there are none."""
    return min(_sent_at_once(session, stream, time), default=None)


def _sent_at_once(session: Session, stream: str, begin: str | datetime) -> list[int]:
    """Return the offsets of what the server sends to a new consumer before it answers the next request."""
    found: list[int] = []

    def on_message(_delivery: Any, properties: BasicProperties, _body: bytes) -> None:
        found.append(offset_of(properties))

    with session.another_channel():
        session.prefetch(1)  # the messages that were written together come as a whole
        try:
            session.consume(stream, on_message, x_stream_offset=begin)
        except RefusedError as error:
            if "x-stream-offset" not in str(error):
                raise
            raise ConnectError(f"{stream} is no stream. Read it with RabbitQueueSource.") from error
        session.count(stream)
    return found
