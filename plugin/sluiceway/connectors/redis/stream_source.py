"""RedisStreamSourceConnector and its task: read streams by entry id, so that the position is in Kafka's offsets."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from sluiceway.api import (
    ExactlyOnceSupport,
    Offset,
    OffsetTarget,
    OffsetTargetKind,
    Partition,
    SourceRecord,
    SourceTask,
    SourceWatch,
)
from sluiceway.config.definition import ConfigDef
from sluiceway.config.intervals import interval_of
from sluiceway.connectors.errors import UnreachableError
from sluiceway.connectors.redis.connection import opened, redis_errors
from sluiceway.connectors.redis.streams import (
    BEGINNING,
    END,
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
from sluiceway.connectors.shares import dealt
from sluiceway.errors import BadRequestError, ConnectError, DataError, RetriableError

if TYPE_CHECKING:
    from redis import Redis


log = logging.getLogger(__name__)

CONFIG = ConfigDef(stream_keys("if there is no offset"))
STREAM, ID, ENTRIES = "stream", "id", "entries"

CHECK_SECONDS = 10.0  # between two looks at what the streams were given
_BLOCK_MS = 500
_LAST_NUMBER = 2**64 - 1


def options_of(config: Mapping[str, str]) -> StreamOptions:
    """Return the options of a config. Raises ConfigError."""
    return stream_options(CONFIG, config)


class RedisStreamSourceTask(SourceTask):
    """Reads the entries of streams after the last one that Kafka has.

    It counts them. From Redis 7 on, a stream knows how many entries it was ever given: whenever the task has read to the end, the
    difference is what was trimmed or deleted unread.
    """

    _client: Redis | None = None

    def start(self, config: Mapping[str, str]) -> None:
        self._options = options = options_of(config)
        self._records = Records(options)
        self._partitions: dict[str, Partition] = {name: {STREAM: name} for name in options.streams}
        stored = self.context.offset_storage_reader.offsets(list(self._partitions.values()))
        interval = interval_of(config)
        self._limit = None if interval is None else last_before(interval.end)
        self._passed: set[str] = set()  # streams that were read to the end of the interval
        self._positions: dict[str, Entry] = {}
        self._counts: dict[str, int] = {}  # of the entries that the stream had up to the position, where that is known
        for name, offset in zip(options.streams, stored, strict=True):
            if offset is not None:
                check_offset(offset)
                self._positions[name] = Entry.parse(str(offset[ID]))
                if ENTRIES in offset:
                    self._counts[name] = int(str(offset[ENTRIES]))
            elif interval is not None:
                self._positions[name] = last_before(interval.start)
            elif options.begin != END:
                self._positions[name] = Entry.parse(options.begin)
                if options.begin == BEGINNING:
                    self._counts[name] = 0
        self._seen = {name: self._positions[name] for name, offset in zip(options.streams, stored, strict=True) if offset}
        self._ends: dict[str, Entry] = {}  # of the streams when the task began, for bounded runs
        self._empty = False  # the last read found nothing
        self._unstored: set[str] = set()  # streams whose position or count has changed without a record
        self._asks = False  # the last poll returned nothing, so that the runtime asks for what is not stored
        self._missed = 0
        self._next_check = 0.0
        self._client = opened(options.server)

    def poll(self) -> Sequence[SourceRecord] | None:
        client = self._opened()
        try:
            with redis_errors(self._options.server):
                self._find_ends(client)
                if self._limit is None and time.monotonic() >= self._next_check:
                    self._check(client)
                if self._unstored and not self._asks:
                    self._asks = True
                    return None
                found = [(name.decode(), self._in_interval(name.decode(), entries)) for name, entries in self._read(client)]
        except UnreachableError as error:
            self._next_check = 0.0
            raise RetriableError(str(error)) from error
        self._empty = not any(entries for _, entries in found)
        records: list[SourceRecord] = []
        for stream, entries in found:
            for id_, fields in entries:
                if record := self._record(stream, id_.decode(), fields):
                    records.append(record)
            if entries:
                self._positions[stream] = self._seen[stream] = Entry.parse(entries[-1][0].decode())
        return records or None

    def _in_interval(self, stream: str, entries: Sequence[Any]) -> Sequence[Any]:
        """Return the entries of the run's interval, all if it has none: the milliseconds of an id are Redis's time."""
        if self._limit is None:
            return entries
        kept = [entry for entry in entries if Entry.parse(entry[0].decode()) <= self._limit]
        if len(kept) < len(entries):
            self._passed.add(stream)
        return kept

    @property
    def ended(self) -> bool | None:
        """True once a read has found nothing, or all streams are read up to the ends that they had at first."""
        ends, positions = self._ends, self._positions
        left = [name for name in self._options.streams if name not in self._passed]
        return self._empty or all(name in ends and ends[name] <= positions[name] for name in left)

    def _read(self, client: Redis) -> Sequence[Any]:
        # A stream's name is bytes in the answer. Redis waits for the first entry of any stream.
        positions: dict[Any, Any] = {name: str(entry) for name, entry in self._positions.items() if name not in self._passed}
        if not positions:
            return ()
        found: Any = client.xread(positions, count=self._options.most, block=_BLOCK_MS)
        return found or ()

    def _record(self, stream: str, id_: str, fields: Sequence[bytes]) -> SourceRecord | None:
        if stream in self._counts:
            self._counts[stream] += 1
        partition, offset = self._partitions[stream], self._offset(stream, id_)
        try:
            return self._records.record(stream, id_, fields, partition, offset)
        except DataError as error:
            self.context.report(self._records.raw(stream, id_, fields, partition, offset), error)
            self._note(stream)  # no record has its offset
            return None

    def _note(self, stream: str) -> None:
        self._unstored.add(stream)
        self._asks = False

    def _find_ends(self, client: Redis) -> None:
        """Find the last entries of the streams, where those are read that are read from the end on."""
        for name in self._options.streams:
            if name not in self._ends:
                about = stream_info(client, name)
                end = self._ends[name] = last_entry(about) if about else Entry((0, 0))
                if name not in self._positions:
                    self._positions[name] = end
                    self._note(name)

    def idle_offsets(self) -> Sequence[tuple[Partition, Offset | None]]:
        """Return ends that were found, counts that were set right, and positions behind bad entries, for the next start."""
        changed, self._unstored = self._unstored, set()
        return [(self._partitions[name], self._offset(name, str(self._positions[name]))) for name in changed]

    def _offset(self, stream: str, id_: str) -> Offset:
        count = self._counts.get(stream)
        return {ID: id_} if count is None else {ID: id_, ENTRIES: count}

    def _check(self, client: Redis) -> None:
        """Count the entries that were deleted unread. Raises ConnectError for a stream that has gone back."""
        self._next_check = time.monotonic() + CHECK_SECONDS
        for name, position in self._positions.items():
            about = stream_info(client, name)
            if about is None:
                continue
            last, seen = last_entry(about), self._seen.get(name)
            if seen is not None and last < seen:
                raise ConnectError(
                    f"Stream {name} ends at {last}, before the entry {seen} that was read last: Redis has lost data, or the "
                    "stream was deleted and written again. To read what it has now, stop the connector and reset its offset: "
                    f"sluiceway offsets reset {self.context.configs.get('name', 'NAME')}"
                )
            added = about.get("entries-added")  # from Redis 7 on
            if added is not None and (last == position or not client.xrange(name, min=f"({position}", count=1)):
                self._positions[name] = max(last, position)
                self._count(name, int(added))

    def _count(self, name: str, added: int) -> None:
        """Compare what was read with what the stream was given up to the position."""
        known = self._counts.get(name)
        if known == added:
            return
        self._counts[name] = added
        self._note(name)
        if known is not None and known < added:
            self._missed += added - known
            log.warning(
                "Stream %s: %d entries were trimmed or deleted before they were read, up to %s",
                *(name, added - known, self._positions[name]),
            )

    def metrics(self) -> Mapping[str, float]:
        """Return how many entries were deleted unread."""
        return {"entries-missed": self._missed} if self._client is not None else {}

    def stop(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _opened(self) -> Redis:
        if self._client is None:
            raise ConnectError("The task has not been started. Call start() first.")
        return self._client


def last_before(milliseconds: int) -> Entry:
    """Return the last id that a stream can have before a time."""
    return Entry((max(milliseconds - 1, 0), _LAST_NUMBER))


def check_offset(offset: Offset) -> None:
    """Raise ConnectError for what is no offset of a stream."""
    count = offset.get(ENTRIES, 0)
    try:
        Entry.parse(str(offset.get(ID)))
        if set(offset) - {ID, ENTRIES} or not isinstance(count, int) or isinstance(count, bool) or count < 0:
            raise ValueError(f"{dict(offset)} is no offset")
    except ValueError as error:
        raise ConnectError(f'{error}. An offset is {{"{ID}": "1700000000000-0"}}.') from error


class RedisStreamSourceConnector(StreamSourceConnector):
    """Reads streams of Redis by entry id: a record for each entry. Each stream is read by one task."""

    task_class = RedisStreamSourceTask

    @classmethod
    def config_def(cls) -> ConfigDef:
        return CONFIG

    @classmethod
    def interval_refusal(cls, config: Mapping[str, str]) -> str:
        return ""

    @classmethod
    def watch_refusal(cls, config: Mapping[str, str]) -> str:
        return ""

    @classmethod
    def watch(cls, config: Mapping[str, str]) -> SourceWatch:
        return LastEntries(options_of(config))

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        streams = options_of(self._config).streams
        return [{**self._config, STREAMS: ",".join(group)} for group in dealt(streams, max_tasks)]

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
        """Return the last ids before a target. A shift is not offered: ids have gaps."""
        options = options_of(config)
        if target.kind is OffsetTargetKind.EARLIEST:
            return [({STREAM: name}, {ID: BEGINNING}) for name in options.streams]
        if target.kind is OffsetTargetKind.SHIFT:
            raise BadRequestError("Entries of streams are not numbered. Set a time, the beginning, or the end.")
        most = last_before(target.number if target.kind is OffsetTargetKind.TIMESTAMP else _LAST_NUMBER)
        with closing(opened(options.server)) as client, redis_errors(options.server):
            found = {name: stream_info(client, name) for name in options.streams}
        return [({STREAM: name}, {ID: str(min(most, last_entry(about)))}) for name, about in found.items() if about is not None]


class LastEntries:
    """The ids of the newest entries that streams ever had. Reading or trimming a stream does not change them."""

    def __init__(self, options: StreamOptions) -> None:
        self._options = options
        self._client: Redis | None = None

    def mark(self) -> str:
        """Return the ids. Raises UnreachableError, and ConnectError for a refused login."""
        if self._client is None:
            self._client = opened(self._options.server)
        with redis_errors(self._options.server):
            found = {name: stream_info(self._client, name) for name in self._options.streams}
        return " ".join("-" if about is None else str(last_entry(about)) for about in found.values())

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()
