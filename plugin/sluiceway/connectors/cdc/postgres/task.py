"""The source task of the PostgreSQL connector: a snapshot of the tables, then the log. Runs on an executor."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sluiceway.api import EncodedRecords, Offset, SourceRecord, SourceTaskContext
from sluiceway.connectors.cdc.catch_up import CatchUp
from sluiceway.connectors.cdc.emitter import Emitter
from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.interval import Interval
from sluiceway.connectors.cdc.notifications import Notifications
from sluiceway.connectors.cdc.postgres.catalog import Catalog
from sluiceway.connectors.cdc.postgres.config import PostgresConfig, postgres_config
from sluiceway.connectors.cdc.postgres.connection import connect, connect_replication, current_lsn, is_transient
from sluiceway.connectors.cdc.postgres.pgoutput import BEGIN, commit_micros
from sluiceway.connectors.cdc.postgres.receiver import Received, Receiver, SlotBusyError
from sluiceway.connectors.cdc.postgres.replication import (
    ServerIdentity,
    Slot,
    SlotUsage,
    create_slot,
    drop_slot,
    ensure_publication,
    find_slot,
    first_lsn,
    read_identity,
    slot_usage,
)
from sluiceway.connectors.cdc.postgres.signals import PostgresSignals
from sluiceway.connectors.cdc.postgres.snapshot import Snapshot, begin_snapshot, lock_tables, snapshot_position, table_to_read
from sluiceway.connectors.cdc.postgres.source import NAME, Position, moved_offset
from sluiceway.connectors.cdc.postgres.start import (
    Plan,
    check_slot_position,
    find_gap,
    may_continue_snapshot,
    plan_start,
    stored_position,
)
from sluiceway.connectors.cdc.postgres.stream import StreamReader
from sluiceway.connectors.cdc.postgres.types import TypeRegistry
from sluiceway.connectors.cdc.ranges import PROGRESS, rest
from sluiceway.connectors.cdc.retries import Attempts
from sluiceway.connectors.cdc.signals import requests_differ
from sluiceway.connectors.cdc.sizes import next_part
from sluiceway.connectors.cdc.task import CdcTask, LogSource, Records
from sluiceway.errors import ConnectError, RetriableError

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]


log = logging.getLogger(__name__)

_IDLE_BYTES = 8 << 20  # of log without records, after which the stored offset moves on
_SNAPSHOT_KEYS = ("snapshot", "snapshot_completed", "last_snapshot_record", PROGRESS)
_POLL_SHARE = 4  # of the queue's bytes that one poll returns at most
_WATCH_SECONDS = 30.0
_LARGE_LOG = 4 << 30
_FULL_SHARE = 0.75


class PostgresSource(LogSource):
    """Reads one database. One thread calls everything here; the log arrives by the thread of a ``Receiver``."""

    def __init__(self, config: PostgresConfig, context: SourceTaskContext, catch_up: CatchUp) -> None:
        common = config.common
        super().__init__(common, Emitter(common, NAME, context.converters))
        self._config = config
        self._context = context
        self._catch_up = catch_up
        self._retries = Attempts(common.max_retries, common.retry_wait, "errors.max.retries")
        self._slot_retries = Attempts(max(config.slot_retries, 0), config.slot_retry_wait, "slot.max.retries")
        self._pause = 0.0  # before the next attempt
        self._notifications = Notifications(common, self.emitter)
        self._watch = SlotWatch(config)
        self._tables: list[TableId] | None = None  # those of the start, until they are asked for
        self._connection: Connection | None = None
        self._receiver: Receiver | None = None
        self._reader: StreamReader | None = None
        self._snapshot: Iterator[SourceRecord | EncodedRecords] | None = None
        self._taken: list[Received] = []  # from the receiver, but not read
        self._behind: list[Received] = []  # likewise, and behind the interval of the run
        self._position: Position | None = None
        self._offset: dict[str, Any] = {}  # behind all records that ``take`` has returned, and behind what a commit stores
        self._read_offset: dict[str, Any] = {}
        self._awaited = False
        self._server: ServerIdentity | None = None
        self._plan: Plan | None = None
        self._started = False
        self._log_end = 0

    @property
    def connected(self) -> bool:
        return self._reader is not None

    def caught_up(self) -> bool:
        if not self._started or self._snapshot is not None or self._taken:
            return False
        if self._reader is None:
            return True
        reader, signals = self._reader, self._signals
        if reader.in_transaction or signals.blocking or signals.incremental.running:
            return False
        return self._catch_up.passed or max(reader.position.lsn, reader.safe_lsn) >= self._log_end

    def take(self) -> Sequence[Records]:
        pause, self._pause = self._pause, 0.0
        if pause:
            self._context.wait(pause)
        with self._connected():
            found = self._take()
        self._retries.healed()
        return found

    @contextmanager
    def _connected(self) -> Iterator[None]:
        """Disconnect at an error. Raise one that Connect retries if the connection was lost."""
        try:
            yield
        except Exception as error:
            self._disconnect()
            busy = isinstance(error, SlotBusyError)
            where = str(self._config.address)
            if busy or is_transient(error):
                retries = self._slot_retries if busy else self._retries
                failure = retries.failed(error, where)
                self._pause = retries.wait  # of the next call: the runtime shows this error meanwhile
                raise failure from error
            raise error if isinstance(error, ConnectError) else ConnectError(f"{where}: {error}") from error

    def _take(self) -> list[Records]:
        if not self._started and (records := self._start_reading()):
            return [records]
        if self._snapshot is not None:
            records, encoded = next_part(self._snapshot, self.common.batch_size, self.common.queue_bytes // _POLL_SHARE)
            last = encoded or (records[-1] if records else None)
            if last is not None:
                self._offset = dict(last.source_offset or {})
                return [records] if encoded is None else [records, encoded]
            self._end_snapshot()
            return [self._notifications.take(self._offset)]
        return [] if self._reader is None or self._receiver is None else self._arrived(self._reader, self._receiver)

    def _start_reading(self) -> list[SourceRecord]:
        """Decide by offset and slot what to read, and begin. Return the notifications of that."""
        config = self._config
        stored = self._context.offset_storage_reader.offset(self.emitter.partition)
        self._connection = connection = connect(config.address)
        self._types = TypeRegistry(connection.execute, config.settings)
        slot = find_slot(connection, config.slot)
        offset = self._offset or dict(stored or {})
        self._plan = plan = plan_start(config, offset or None, self._gap(stored_position(offset or None), slot))
        self._started = True
        if plan.snapshot and plan.stream and slot is not None and slot.lost:
            drop_slot(connection, config.slot)
            slot = None
        self._tables = Catalog(connection).tables()
        tables = list(filter(config.captured, self._tables))
        if plan.stream:
            ensure_publication(connection, config, tables)
        chosen = list(filter(config.common.has_snapshot, config.in_list_order(tables)))
        if plan.snapshot:
            log_remains = may_continue_snapshot(config, slot) and self._gap(Position.of(offset), slot) is None
            if not log_remains or not self._continue_snapshot(offset, chosen):
                self._begin_snapshot(plan, chosen, slot_exists=slot is not None)
            return []
        if (position := plan.position) is None:
            position = Position(lsn=first_lsn(config, slot))
            self._notifications.snapshot("SKIPPED")
        self._start_stream(position, offset)
        return self._notifications.take(None)

    def _gap(self, position: Position | None, slot: Slot | None) -> str | None:
        """Return what the log lacks behind a stored position, or None."""
        config = self._config
        if position is None or config.common.snapshots.mode in ("initial_only", "always"):
            return None
        before, server = self._server, read_identity(self._config.address)
        gap = find_gap(config, position, slot, server, before)
        if gap is None and slot is not None and (gap_warning := check_slot_position(config, position, slot)) is not None:
            log.warning("%s", gap_warning)
        if gap is not None:
            log.warning("%s", gap)
        self._server = server
        return gap

    def _begin_snapshot(self, plan: Plan, tables: Sequence[TableId], *, slot_exists: bool) -> None:
        """Begin the snapshot's transaction at a position of the log, which a new slot gives: ours, or a temporary one."""
        config, connection = self._config, self._session
        if plan.stream:
            replication = connect_replication(config.address)
            try:
                name = f"{config.slot[:50]}_snapshot" if slot_exists else config.slot
                created = create_slot(replication, name, temporary=slot_exists, failover=config.failover and not slot_exists)
                begin_snapshot(connection, config, created.snapshot)
            finally:
                replication.finish()
            lsn = created.consistent_lsn
        else:
            begin_snapshot(connection, config, None)
            lsn = current_lsn(connection)
        position = snapshot_position(connection, lsn)
        lock_tables(connection, config, tables)
        self._position = position
        self._snapshot_reader = Snapshot(config, connection, self._types, self.emitter, position)
        self._notifications.snapshot("STARTED")
        self._offset = self._snapshot_reader.offset(completed=False)
        self._snapshot_reader.encodes = self.emitter.encodes_columns
        self._snapshot = self._snapshot_reader.parts(tables)

    def _continue_snapshot(self, offset: Mapping[str, Any], tables: Sequence[TableId]) -> bool:
        """Read the rest of an interrupted snapshot beside the log, from its position on. Return False if all is left."""
        catalog = Catalog(self._session)
        described = [found for found in map(catalog.table, tables) if found.columns]
        left = rest(offset, [table_to_read(catalog, found, self._config, self._types) for found in described])
        if left is None:
            return False
        requests, whole = left
        log.info(
            "Continuing the initial snapshot: %d ranges of keys and %d tables without key are left", len(requests), len(whole)
        )
        self._start_stream(Position.of(offset), offset)
        self._signals.incremental.resume_requests(requests)
        if whole:
            self._signals.finish_snapshot(whole, {key: offset[key] for key in _SNAPSHOT_KEYS if key in offset})
        return True

    def _end_snapshot(self) -> None:
        self._session.execute("COMMIT")
        for table, count in self._snapshot_reader.counts.items():
            self._notifications.table_scanned(table, count)
        self._notifications.snapshot("COMPLETED")
        self._snapshot = None
        self._offset = self._snapshot_reader.offset(completed=True)
        if self._plan is not None and self._plan.stream and self._position is not None:
            self._start_stream(self._position, self._offset)

    def _start_stream(self, position: Position, offset: Mapping[str, Any]) -> None:
        connection = self._session
        if self._catch_up.wanted and not self._log_end:
            self._log_end = current_lsn(connection)
        self._catch_up.passed = False  # the log is received again from the last offset on
        self._signals = PostgresSignals(self._config, connection, self._types, self.emitter, self._notifications)
        self._signals.load(offset)
        self._reader = StreamReader(self._config, Catalog(connection), self._types, self.emitter, position, self._signals)
        if self._reader.transactions is not None:
            self._reader.transactions.load(offset)
        if self._server is None:
            self._server = read_identity(self._config.address)
        self._receiver = Receiver(self._config, position.start_lsn, connection.info.server_version, self._context.wake)
        self._slot_retries.healed()

    def _arrived(self, reader: StreamReader, receiver: Receiver) -> list[Records]:
        """Return the records of the messages that have arrived, and of snapshots beside the log."""
        records, encoded = self._received(reader, receiver)
        later = [] if reader.in_transaction else self._signals.between_transactions(reader)
        if (offset := reader.offset()) != self._read_offset:  # else the offset may have moved on without records
            self._read_offset = self._offset = offset
        return [records + later] if encoded is None else [records, encoded, later]

    def _received(self, reader: StreamReader, receiver: Receiver) -> tuple[list[SourceRecord], EncodedRecords | None]:
        """Return the records of the messages that have arrived, and those encoded together that come after these."""
        common, signals = self.common, self._signals
        records: list[SourceRecord] = []
        left = common.queue_bytes // _POLL_SHARE
        while len(records) < common.batch_size and (reader.in_transaction or not signals.blocking):
            if not self._taken:
                try:
                    most = 1 if common.signals.table else common.batch_size - len(records)
                    self._taken = self._next_messages(receiver, most, left)
                except RetriableError:
                    if records:
                        break  # the next poll raises it again
                    raise
            messages = self._taken
            if not messages:
                break
            end = len(messages)
            if self.emitter.encodes_columns and not signals.incremental.running and not signals.blocking:
                encoded, end = reader.read_many(messages)
                if encoded is not None:
                    self._taken = messages[end:]
                    return records, encoded
            for message in messages[:end]:
                records += reader.read(message)
                records += signals.after_message(reader)
                left -= len(message.data)
            self._taken = messages[end:]
            if left <= 0:
                break
        return records, None

    def _next_messages(self, receiver: Receiver, most: int, most_bytes: int) -> list[Received]:
        """Return the next messages of the log: none behind the interval of the run, which then is passed.

        A snapshot beside the log needs what follows, to know which rows have changed since.
        """
        catch_up = self._catch_up
        whole = not catch_up.has_interval or self._signals.incremental.running
        if whole:
            catch_up.passed = False
        elif catch_up.passed:
            return []
        messages, self._behind = self._behind or receiver.take(most, most_bytes), []
        for number, message in enumerate(() if whole else messages):
            if message.data[:1] == BEGIN and catch_up.passes(commit_micros(message.data)):
                self._behind = messages[number:]
                return messages[:number]
        return messages

    def offset(self) -> Offset | None:
        return None if self._reader is None else self._reader.offset()

    def idle_offset(self, newest: Offset, *, ended: bool) -> Offset | None:
        """Return the offset of a start without records at once: there would be nothing to move."""
        reader = self._reader
        if reader is None or reader.in_transaction:
            return None
        offset = reader.offset()
        if newest and not requests_differ(newest, offset):
            distance = reader.safe_lsn - Position.of(newest).start_lsn
            if self._signals.incremental.running or distance <= 0 or (distance < _IDLE_BYTES and not reader.urgent):
                return None
            self._awaited, reader.urgent = reader.urgent, False
            offset = moved_offset(newest, reader.safe_lsn)
        self._offset = offset
        return offset

    @property
    def commit_is_awaited(self) -> bool:
        """Whether the server has asked how far the log is stored: it ends only once all of it is."""
        return self._awaited

    def committed(self, offset: Offset) -> None:
        """Acknowledge the position of the stored offset, as Debezium does: so either can go on behind the other."""
        if self._receiver is not None and self._config.flush and offset:
            self._receiver.acknowledge(Position.of(offset).start_lsn)
        self._awaited = False
        if self._reader is not None:
            self._signals.commit(offset)

    def execute(self, statement: str) -> None:
        if self._reader is not None:  # else the connection has the snapshot's transaction
            self._session.execute(statement)

    def tables(self, concerns: Callable[[str], bool]) -> list[TableId] | None:
        found, self._tables = self._tables, None
        if found is not None or self._reader is None:
            return found
        with self._connected():
            return Catalog(self._session).tables()

    def watch_log(self) -> None:
        if self._reader is not None and self._watch.due():
            with self._connected():
                self._watch.check(self._session)

    def metrics(self) -> Mapping[str, float]:
        return self._watch.values

    @property
    def _session(self) -> Connection:
        if self._connection is None:
            raise ConnectError(f"Not connected to {self._config.address}")
        return self._connection

    def _disconnect(self) -> None:
        """Close everything; the next poll begins again at the last position."""
        if self._snapshot is not None:
            self._snapshot_reader.close()
        self._started, self._snapshot, self._reader, self._taken, self._behind = False, None, None, [], []
        receiver, self._receiver = self._receiver, None
        connection, self._connection = self._connection, None
        if receiver is not None:
            receiver.close()
            self._signals.close()
        if connection is not None:
            connection.close()

    def close(self) -> None:
        self._disconnect()
        if self._config.drop_slot:
            with connect(self._config.address) as connection:
                drop_slot(connection, self._config.slot)


class PostgresTask(CdcTask):
    """Captures one database."""

    def open(self, config: Mapping[str, str], catch_up: CatchUp) -> LogSource:
        return PostgresSource(postgres_config(config), self.context, catch_up)


class SlotWatch:
    """The usage of a task's slot. The task's thread checks it; any thread reads ``values``."""

    def __init__(self, config: PostgresConfig) -> None:
        self.values: Mapping[str, float] = {}
        self._slot = config.slot
        self._interval = Interval(_WATCH_SECONDS, at_once=True)
        self._warned = 0

    def due(self) -> bool:
        """Return True at the first call, and then every 30 seconds."""
        return self._interval.due()

    def check(self, connection: Connection) -> None:
        """Update the metrics, and log a warning if the slot is in danger."""
        usage = slot_usage(connection, self._slot)
        if usage is None:
            return
        values = {"log-retained-bytes": float(usage.retained), "log-behind-bytes": float(usage.behind)}
        if usage.free is not None:
            values["log-free-bytes"] = float(usage.free)
        self.values = values
        danger = danger_of(usage)
        if danger is None:
            self._warned = 0
        elif usage.retained >= 2 * self._warned or usage.status == "unreserved":
            self._warned = usage.retained
            log.warning("The replication slot %s keeps %d MiB of log: %s", self._slot, usage.retained >> 20, danger)


def danger_of(usage: SlotUsage) -> str | None:
    """Return what a slot's usage leads to, and what to do, or None if nothing is wrong."""
    check = "Check that the connector runs and keeps up, and that no transaction stays open for long."
    if usage.status == "unreserved":
        return f"the server drops what the connector has not read at its next checkpoint. Raise max_slot_wal_keep_size. {check}"
    if usage.free is not None:
        if usage.retained < _FULL_SHARE * (usage.retained + usage.free):
            return None
        return f"after {usage.free >> 20} MiB more, the server gives the slot up (max_slot_wal_keep_size). {check}"
    return (
        f"without max_slot_wal_keep_size, the log can fill the server's disk. {check}" if usage.retained >= _LARGE_LOG else None
    )
