"""NatsStreamSourceConnector and its task: read JetStream's streams by sequence, so that the position is in Kafka's offsets."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import TYPE_CHECKING

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
from sluiceway.config.definition import ConfigDef, ConfigValue, ValidatedValue
from sluiceway.connectors.errors import RefusedError, UnreachableError
from sluiceway.connectors.nats.connection import NatsConnector
from sluiceway.connectors.nats.jetstream import (
    KEPT_SECONDS,
    StreamState,
    consumer_state,
    delete_consumer,
    ordered_consumer,
    stream_state,
)
from sluiceway.connectors.nats.messages import FILTER, Records, topic_conflicts
from sluiceway.connectors.nats.pulls import ConsumerGoneError, Pull, delivery_of, fetch
from sluiceway.connectors.nats.session import Session, opened
from sluiceway.connectors.nats.stream_options import CONFIG, FIRST, NEXT, STREAM, STREAMS, SUBJECT, options_of
from sluiceway.connectors.shares import dealt
from sluiceway.errors import ConnectError, DataError, RetriableError

if TYPE_CHECKING:
    from nats.aio.msg import Msg

    from sluiceway.connectors.nats.pulls import Delivery

log = logging.getLogger(__name__)

SEQUENCE, CREATED = "sequence", "created"
_WAIT_SECONDS = 0.5
_NOTHING = 0  # the position before the first message


@dataclass(slots=True)
class _Reading:
    """A stream that is read.

    Attributes:
        position: the sequence of the last message that was read, or of the one before the first; None before it is found.
        seen: whether the stream is known to have had ``position``.
        created: when the stream was created; None before it is known.
        end: the last sequence of the stream at first, for bounded runs; None before it is known.
        at_end: whether all up to ``end`` was read.
        pull: the requests to the consumer, while there is one.
        number: of the consumer's last delivery.
        used: when the consumer was used, by the monotonic clock.
    """

    name: str
    partition: Partition
    records: Records
    position: int | None = None
    seen: bool = False
    created: str | None = None
    end: int | None = None
    at_end: bool = False
    consumer: str = ""
    pull: Pull | None = None
    number: int = 0
    used: float = field(default=0.0)

    def offset(self, position: int) -> Offset:
        return {SEQUENCE: position} if self.created is None else {SEQUENCE: position, CREATED: self.created}

    @property
    def has_ended(self) -> bool:
        return self.at_end or (self.end is not None and self.position is not None and self.position >= self.end)


class NatsStreamSourceTask(SourceTask):
    """Reads the messages of streams after the last one that Kafka has.

    Each stream has a consumer without acknowledgements that the task creates where it is, and that the server forgets. Sequences
    have gaps where messages were deleted, or have other subjects. What was removed unread shows when the stream's first sequence
    is behind such a gap.
    """

    _session: Session | None = None
    _readings: Sequence[_Reading] = ()
    _missed = 0

    def start(self, config: Mapping[str, str]) -> None:
        self._options = options = options_of(config)
        self._name = str(self.context.configs.get("name", ""))
        self._readings = [_Reading(each, options.partition(each), Records(options.source, each)) for each in options.streams]
        stored = self.context.offset_storage_reader.offsets([each.partition for each in self._readings])
        for reading, offset in zip(self._readings, stored, strict=True):
            if offset is not None:
                check_offset(offset)
                reading.position, reading.seen = int(offset[SEQUENCE]), True
                reading.created = None if offset.get(CREATED) is None else str(offset[CREATED])
            elif options.begin == FIRST:
                reading.position = _NOTHING
            elif isinstance(options.begin, int):
                reading.position = options.begin - 1
        self._unstored: set[int] = set()  # numbers of streams whose position has changed without a record
        self._asks = False  # the last poll returned nothing, so that the runtime asks for what is not stored
        self._attempts = 0

    def poll(self) -> Sequence[SourceRecord] | None:
        try:
            session = self._connected()
            if self._unstored and not self._asks:
                self._asks = True
                return None
            pulls = [each.pull for each in self._readings if each.pull is not None]
            fetch(session, pulls, self._options.most, _WAIT_SECONDS)
            return [record for each in self._readings for record in self._read(session, each)] or None
        except ConsumerGoneError as error:
            log.info("%s: it is created again", error)
            self._forget_consumers()
            return None
        except UnreachableError as error:
            self._disconnect()
            raise RetriableError(str(error)) from error

    def _connected(self) -> Session:
        """Return the session, with a consumer of each stream."""
        if self._session is None:
            self._session = opened(self._options.source.server, self._name, self._attempts)
            self._attempts += 1
        for each in self._readings:
            # The server forgets a consumer that was not used, and does not say so.
            unused = time.monotonic() - each.used > KEPT_SECONDS / 2
            if each.pull is None or unused or self._is_lost(self._session, each, each.pull):
                self._consume(self._session, each)
            each.used = time.monotonic()
        return self._session

    def _is_lost(self, session: Session, reading: _Reading, pull: Pull) -> bool:
        """Return whether a consumer that is silent was deleted."""
        silent = pull.silence > self._options.source.server.timeout
        return silent and consumer_state(session, reading.name, reading.consumer) is None

    def _consume(self, session: Session, reading: _Reading) -> None:
        """Begin to read a stream behind its position."""
        name, state = reading.name, stream_state(session, reading.name)
        self._check(reading, state)
        if reading.position is None and self._options.begin == NEXT:
            reading.position, reading.created = state.last, state.created
            self._note(reading)
        begin = self._options.begin if reading.position is None else reading.position + 1
        assert not isinstance(begin, str)  # noqa: S101 (the words have positions)
        try:
            consumer = ordered_consumer(session, name, begin, self._options.source.subject)
        except RefusedError as error:
            raise ConnectError(f"{error}. Check {FILTER}, and the stream {name}.") from error
        if reading.position is None:
            reading.position = consumer.delivered
            self._note(reading)
        reading.end = state.last if reading.end is None else reading.end
        reading.created = state.created
        reading.consumer, reading.number, reading.pull = consumer.name, 0, Pull(session, name, consumer.name)

    def _check(self, reading: _Reading, state: StreamState) -> None:
        """Count messages that were removed unread. Raises ConnectError for a stream that is not the one that was read."""
        name, position = reading.name, reading.position
        if state.retention != "limits":
            raise ConnectError(
                f"Stream {name} keeps messages by {state.retention}, until they are taken. Read it with NatsConsumerSource."
            )
        advice = (
            "To read what it has now, stop the connector and reset its offset: "
            f"sluiceway offsets reset {self.context.configs.get('name', 'NAME')}"
        )
        if not reading.seen or position is None:
            return
        if reading.created is not None and reading.created != state.created:
            raise ConnectError(
                f"Stream {name} was deleted and created again, at {state.created}; it was read up to sequence {position} of the "
                f"one that was created at {reading.created}. {advice}"
            )
        if state.last < position:
            raise ConnectError(
                f"Stream {name} ends at sequence {state.last}, before {position}, which was read last: NATS has lost "
                f"data. {advice}"
            )
        self._count_missed(reading, state, position + 1, state.first)

    def _count_missed(self, reading: _Reading, state: StreamState, expected: int, found: int) -> None:
        missed = min(state.first, found) - expected
        if missed <= 0:
            return
        self._missed += missed
        log.warning(
            "Stream %s: up to %d messages, from sequence %d on, were purged or removed by its limits before they were read",
            *(reading.name, missed, expected),
        )
        reading.position = expected + missed - 1  # so that they are counted once
        self._note(reading)

    def _read(self, session: Session, reading: _Reading) -> list[SourceRecord]:
        """Return the records of the messages that have come of a stream."""
        pull = reading.pull
        if pull is None:
            return []
        records: list[SourceRecord] = []
        state: StreamState | None = None
        for message in pull.take():
            delivery = delivery_of(message)
            if delivery.number != reading.number + 1:
                log.warning("Stream %s: deliveries were lost on their way, and are read again", reading.name)
                reading.pull = None
                return records
            reading.number = delivery.number
            position = reading.position or _NOTHING
            if delivery.sequence <= position:
                continue
            if delivery.sequence > position + 1 and reading.seen:
                state = state or stream_state(session, reading.name)
                self._count_missed(reading, state, position + 1, delivery.sequence)
            reading.position, reading.seen = delivery.sequence, True
            if record := self._record(reading, message, delivery):
                records.append(record)
        if pull.is_dry and not reading.has_ended:
            about = consumer_state(session, reading.name, reading.consumer)
            reading.at_end = about is not None and not about.pending and about.number == reading.number
        return records

    def _record(self, reading: _Reading, message: Msg, delivery: Delivery) -> SourceRecord | None:
        partition, offset = reading.partition, reading.offset(delivery.sequence)
        try:
            return reading.records.record(message, delivery, partition, offset)
        except DataError as error:
            self.context.report(reading.records.raw(message, delivery, partition, offset), error)
            self._note(reading)  # no record has its offset
            return None

    def _note(self, reading: _Reading) -> None:
        self._unstored.add(self._readings.index(reading))
        self._asks = False

    def idle_offsets(self) -> Sequence[tuple[Partition, Offset | None]]:
        """Return begins that were found, and positions behind bad or removed messages, for the next start."""
        changed, self._unstored = self._unstored, set()
        readings = [self._readings[number] for number in sorted(changed)]
        return [(each.partition, each.offset(each.position or _NOTHING)) for each in readings]

    @property
    def ended(self) -> bool | None:
        """True once all streams are read up to the last sequences that they had at first."""
        return all(each.has_ended for each in self._readings)

    def paused(self) -> None:
        """Close the connection, so that the server keeps nothing for the task."""
        self._disconnect()

    def metrics(self) -> Mapping[str, float]:
        """Return how many messages were removed unread, at most."""
        return {"messages-missed": self._missed}

    def stop(self) -> None:
        self._disconnect()

    def _forget_consumers(self) -> None:
        for each in self._readings:
            each.pull = None

    def _disconnect(self) -> None:
        self._forget_consumers()
        session, self._session = self._session, None
        if session is not None:
            session.close()


def check_offset(offset: Offset) -> None:
    """Raise ConnectError for what is no offset of a stream."""
    number, created = offset.get(SEQUENCE), offset.get(CREATED)
    known = isinstance(number, int) and not isinstance(number, bool) and _NOTHING <= number < 2**63
    if set(offset) - {SEQUENCE, CREATED} or not known or not isinstance(created, (str, type(None))):
        raise ConnectError(
            f'{dict(offset)} is no offset of a stream. An offset is {{"{SEQUENCE}": 1200}}, that of the last message read, '
            f"and {_NOTHING} is before the first one."
        )


class NatsStreamSourceConnector(NatsConnector, SourceConnector):
    """Reads streams of NATS JetStream by sequence: a record for each message. Each stream is read by one task."""

    task_class = NatsStreamSourceTask

    @classmethod
    def config_def(cls) -> ConfigDef:
        return CONFIG

    @classmethod
    def conflicts(cls, values: Mapping[str, ConfigValue], config: Mapping[str, str]) -> Mapping[str, str]:
        streams = values[STREAMS]
        assert isinstance(streams, list)  # noqa: S101 (parsed as such)
        return topic_conflicts(values, list(map(str, streams)))

    @classmethod
    def try_server(cls, session: Session, found: Mapping[str, ValidatedValue]) -> None:
        streams = found[STREAMS]
        assert isinstance(streams.value, list)  # noqa: S101 (parsed as such)
        for name in streams.value:
            try:
                stream_state(session, str(name))
            except (UnreachableError, ConnectError) as error:
                streams.errors.append(str(error))

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        streams = options_of(self._config).streams
        return [{**self._config, STREAMS: ",".join(group)} for group in dealt(streams, max_tasks)]

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        return ExactlyOnceSupport.SUPPORTED

    def alter_offsets(self, config: Mapping[str, str], offsets: Sequence[tuple[Partition, Offset | None]]) -> bool:
        for partition, offset in offsets:
            if offset is None:
                continue
            if set(partition or ()) not in ({STREAM}, {STREAM, SUBJECT}):
                raise ConnectError(f'A partition is {{"{STREAM}": "ORDERS"}}, and has "{SUBJECT}" too with {FILTER}.')
            check_offset(offset)
        return True

    def find_offsets(
        self, config: Mapping[str, str], target: OffsetTarget, offsets: Sequence[tuple[Partition, Offset]]
    ) -> Sequence[tuple[Partition, Offset | None]]:
        """Return the offsets before a target."""
        options = options_of(config)
        stored = [(partition, offset) for partition, offset in offsets if offset]
        found: list[tuple[Partition, Offset | None]] = []
        with closing(opened(options.source.server, str(config.get("name", "")))) as session:
            for name in options.streams:
                partition, state = options.partition(name), stream_state(session, name)
                if target.kind is OffsetTargetKind.EARLIEST:
                    position = _NOTHING
                elif target.kind is OffsetTargetKind.LATEST:
                    position = state.last
                elif target.kind is OffsetTargetKind.TIMESTAMP:
                    position = _position_at(session, name, datetime.fromtimestamp(target.number / 1000, timezone.utc))
                else:
                    own = next((offset for each, offset in stored if dict(each) == dict(partition)), None)
                    if own is None:
                        continue
                    check_offset(own)
                    position = max(_NOTHING, min(state.last, int(own[SEQUENCE]) + target.number))
                found.append((partition, {SEQUENCE: position, CREATED: state.created}))
        return found


def _position_at(session: Session, stream: str, time: datetime) -> int:
    """Return the sequence before the first message of a time or later."""
    consumer = ordered_consumer(session, stream, time, None)
    delete_consumer(session, stream, consumer.name)
    return consumer.delivered
