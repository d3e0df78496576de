"""The source task of change data capture: returns what a ``LogSource`` reads of its database. Runs on an executor."""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from sluiceway.api import EncodedRecords, Offset, Partition, SourceLag, SourceRecord, SourceTask
from sluiceway.connectors.cdc.catch_up import CatchUp
from sluiceway.connectors.cdc.config import CommonConfig
from sluiceway.connectors.cdc.emitter import Emitter
from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.interval import Interval
from sluiceway.connectors.cdc.missing_tables import MissingTables

log = logging.getLogger(__name__)

Records: TypeAlias = "list[SourceRecord] | EncodedRecords"

_LONGEST_WAIT = 0.5  # of a poll without records, in seconds: signals and the watch of the log must not wait longer


class LogSource(ABC):
    """Reads one database: a snapshot of its tables, then its log. What a database must have to be captured.

    The task's thread calls everything here. Each method raises RetriableError for what another try may heal; the next call then
    begins at the last position again.
    """

    def __init__(self, common: CommonConfig, emitter: Emitter) -> None:
        self.common = common
        self.emitter = emitter

    @property
    @abstractmethod
    def connected(self) -> bool:
        """Whether the log is being received."""

    @abstractmethod
    def take(self) -> Sequence[Records]:
        """Return what has arrived, in order, about a batch; nothing rather than wait."""

    @abstractmethod
    def offset(self) -> Offset | None:
        """Return the offset of the log behind what ``take`` has returned; None before there is one."""

    @abstractmethod
    def idle_offset(self, newest: Offset, *, ended: bool) -> Offset | None:
        """Return the offset to store although no record has it, or None.

        Args:
            newest: the offset that is stored, or will be.
            ended: whether the run has read all that it reads.
        """

    @abstractmethod
    def caught_up(self) -> bool:
        """Whether ``take`` has returned all up to the end that the log had when reading it began."""

    @abstractmethod
    def committed(self, offset: Offset) -> None:
        """Note that all records up to an offset are in Kafka, and the offset is stored."""

    @property
    def commit_is_awaited(self) -> bool:
        """Whether the server waits until all that was read is stored."""
        return False

    @abstractmethod
    def execute(self, statement: str) -> None:
        """Execute the heartbeat's statement."""

    @abstractmethod
    def tables(self, concerns: Callable[[str], bool]) -> Iterable[TableId] | None:
        """Return the database's tables, at least those of the schemas concerned; None while it cannot be asked."""

    @abstractmethod
    def watch_log(self) -> None:
        """Renew ``metrics`` if it is time, and warn if the log may be dropped before it is read."""

    @abstractmethod
    def metrics(self) -> Mapping[str, float]:
        """Return the last metrics of the log, ``log-behind-bytes`` and others. Any thread may ask."""

    @abstractmethod
    def close(self) -> None:
        """End all threads and connections."""


class CdcTask(SourceTask, ABC):
    """Returns the records of one database. The source offset is Debezium's."""

    _opened = False

    @abstractmethod
    def open(self, config: Mapping[str, str], catch_up: CatchUp) -> LogSource:
        """Return the source of a config. It tells ``catch_up`` what it passes."""

    def start(self, config: Mapping[str, str]) -> None:
        self._ready: deque[Records] = deque()  # what the next polls return
        self._newest: Offset = {}  # the last offset that a commit stores
        self._catch_up = CatchUp(config, self.context, self._caught_up)
        self._source = source = self.open(config, self._catch_up)
        self._opened = True
        self._newest = self.context.offset_storage_reader.offset(source.emitter.partition) or {}
        self._wait = min(source.common.poll_interval, _LONGEST_WAIT)
        self._heartbeats = Interval(source.common.heartbeat_interval)
        self._missing = MissingTables(config, self.context.waiting)
        self._delay = SourceDelay()

    def poll(self) -> Sequence[SourceRecord] | None:
        records = self._catch_up.poll(self._poll_once)
        assert not isinstance(records, EncodedRecords)  # noqa: S101 (only poll_columns allows these)
        return records

    def poll_columns(self) -> EncodedRecords | Sequence[SourceRecord] | None:
        self._source.emitter.encode_columns()
        return self._source.emitter.with_reason(self._catch_up.poll(self._poll_once))

    def _caught_up(self) -> bool:
        return not self._ready and self._source.caught_up()

    def _poll_once(self) -> Records | None:
        if not self._ready:
            self._fill()
            if not self._ready:
                self.context.wait(self._wait)
                self._fill()  # else the runtime waits, and has no wake-up to come
        if not self._ready:
            if self._source.connected:
                self._delay.caught_up()
            return None
        records = self._ready.popleft()
        last = records if isinstance(records, EncodedRecords) else records[-1]
        self._newest = offset = last.source_offset or self._newest
        self._delay.polled(offset.get("ts_usec", 0) / 1e6 or offset.get("ts_sec", 0))
        return records

    def _fill(self) -> None:
        """Take what has arrived, and do what is due between records."""
        source = self._source
        self._ready.extend(records for records in source.take() if len(records))
        if self._heartbeats.due():
            self._heartbeat()
        source.watch_log()
        if self._missing.due():
            self._check_tables()

    def _heartbeat(self) -> None:
        source = self._source
        if statement := source.common.heartbeat_query:
            try:
                source.execute(statement)
            except Exception as error:  # noqa: BLE001 (the driver's errors: the next heartbeat tries again)
                log.warning("The heartbeat.action.query failed: %s", error)
        offset = source.offset()
        if offset is not None:
            self._ready.append([source.emitter.heartbeat(offset)])

    def _check_tables(self) -> None:
        """Show which tables the config names that the database does not have."""
        try:
            tables = self._source.tables(self._missing.concerns)
        except Exception as error:  # noqa: BLE001 (the driver's errors: the next check tries again)
            log.warning("Cannot check the tables of the config, trying again: %s", error)
        else:
            if tables is not None:
                self._missing.check(tables)

    def idle_offsets(self) -> Sequence[tuple[Partition, Offset]]:
        """Move the stored offset over log without records: else the server keeps that log, or has dropped it at the next start.

        A micro-batch does so at its end, because the next one would read that log again. Requests of signals are stored at once,
        and the offset of a snapshot without records: else the next start would take another one, behind the changes until then.
        """
        offset = None if self._ready else self._source.idle_offset(self._newest, ended=self._catch_up.done)
        if offset is None:
            return ()
        self._newest = offset
        return [(self._source.emitter.partition, offset)]

    @property
    def commit_is_awaited(self) -> bool:
        return self._source.commit_is_awaited

    def commit(self) -> None:
        self._source.committed(self._newest)

    def metrics(self) -> Mapping[str, float]:
        return self._source.metrics() if self._opened else {}

    def source_lag(self) -> SourceLag:
        return SourceLag(self._delay.seconds, self.metrics().get("log-behind-bytes"))

    def stop(self) -> None:
        if self._opened:
            self._source.close()


class SourceDelay:
    """The delay of the newest event, and the time since then. One thread calls ``polled`` and ``caught_up``; any thread reads.

    Debezium reports the delay of the newest event only, which stays small while a connector cannot read. It includes the
    difference between the clocks of the database and of this machine, as in Debezium.
    """

    def __init__(self, wall: Callable[[], float] = time.time, clock: Callable[[], float] = time.monotonic) -> None:
        self._wall = wall
        self._clock = clock
        self._newest = 0.0
        self._behind: tuple[float, float] | None = None  # the delay, and when it was found

    def polled(self, event_seconds: float) -> None:
        """Note the time of the newest event that ``poll`` returns, in seconds since the epoch; 0 is not known."""
        if not event_seconds:
            return
        if event_seconds != self._newest:  # else only a heartbeat, or the same transaction
            self._newest = event_seconds
            self._behind = max(0.0, self._wall() - event_seconds), self._clock()

    def caught_up(self) -> None:
        """Note that the database had no other event."""
        self._behind = 0.0, self._clock()

    @property
    def seconds(self) -> float | None:
        """The seconds by which the task is behind at most, None before the first event."""
        if self._behind is None:
            return None
        delay, at = self._behind
        return delay + self._clock() - at
