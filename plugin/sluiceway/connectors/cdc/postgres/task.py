"""The task of the PostgreSQL connector: a snapshot of the tables, then the log. Runs on an executor."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sluiceway.api import EncodedRecords, Offset, Partition, SourceLag, SourceRecord, SourceTask
from sluiceway.connectors.cdc.catch_up import CatchUp
from sluiceway.connectors.cdc.emitter import Emitter
from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.interval import Interval
from sluiceway.connectors.cdc.missing_tables import MissingTables
from sluiceway.connectors.cdc.notifications import Notifications
from sluiceway.connectors.cdc.postgres.catalog import Catalog
from sluiceway.connectors.cdc.postgres.config import postgres_config
from sluiceway.connectors.cdc.postgres.connection import connect, connect_replication, current_lsn, driver, is_transient
from sluiceway.connectors.cdc.postgres.pgoutput import BEGIN, commit_micros
from sluiceway.connectors.cdc.postgres.receiver import Received, Receiver, SlotBusyError
from sluiceway.connectors.cdc.postgres.replication import (
    ServerIdentity,
    Slot,
    create_slot,
    drop_slot,
    ensure_publication,
    find_slot,
    first_lsn,
    read_identity,
)
from sluiceway.connectors.cdc.postgres.signals import PostgresSignals
from sluiceway.connectors.cdc.postgres.slot_watch import SlotWatch
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
from sluiceway.connectors.cdc.ranges import rest
from sluiceway.connectors.cdc.signals import requests_differ
from sluiceway.connectors.cdc.sizes import next_part
from sluiceway.connectors.cdc.source_delay import SourceDelay
from sluiceway.errors import ConnectError, RetriableError

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

log = logging.getLogger(__name__)

_IDLE_BYTES = 8 << 20  # of log without records, after which the stored offset moves on
_POLL_SHARE = 4  # of the queue's bytes that one poll returns at most


class PostgresTask(SourceTask):
    """Reads one database. One thread calls everything here; the log arrives by the thread of a ``Receiver``."""

    _connection: Connection | None = None
    _receiver: Receiver | None = None
    _reader: StreamReader | None = None
    _snapshot: Iterator[SourceRecord | EncodedRecords] | None = None
    _started = False
    _failures = 0
    _pause = 0.0

    def start(self, config: Mapping[str, str]) -> None:
        self._config = postgres_config(config)
        common = self._config.common
        self._emitter = Emitter(common, NAME, self.context.converters)
        self._heartbeats = Interval(common.heartbeat_interval)
        self._notifications = Notifications(common, self._emitter)
        self._watch = SlotWatch(self._config)
        self._missing = MissingTables(config, self.context.waiting)
        self._delay = SourceDelay()
        self._pending: list[SourceRecord] = []
        self._encoded: EncodedRecords | None = None  # the records that the next poll returns
        self._taken: list[Received] = []  # from the receiver, but not read
        self._behind: list[Received] = []  # likewise, and behind the interval of the run
        self._position: Position | None = None
        self._offset: dict[str, Any] = {}  # behind all records that poll has returned, and behind what a commit stores
        self._read_offset: dict[str, Any] = {}
        self._newest: Offset = {}  # the last one that a commit stores
        self._awaited = False
        self._server: ServerIdentity | None = None
        self._plan: Plan | None = None
        self._busy = 0
        self._log_end = 0
        self._catch_up = CatchUp(config, self.context, self._caught_up)

    def poll(self) -> Sequence[SourceRecord] | None:
        return self._catch_up.poll(self._poll_records)

    def poll_columns(self) -> EncodedRecords | Sequence[SourceRecord] | None:
        self._emitter.encode_columns()
        return self._emitter.with_reason(self._catch_up.poll(self._poll_once))

    def _poll_records(self) -> Sequence[SourceRecord] | None:
        records = self._poll_once()
        assert not isinstance(records, EncodedRecords)  # noqa: S101 (only poll_columns allows these)
        return records

    def _caught_up(self) -> bool:
        """Whether all records are returned up to the end that the log had when reading it began."""
        if not self._started or self._pending or self._encoded is not None or self._snapshot is not None or self._taken:
            return False
        if self._reader is None:
            return True
        reader, signals = self._reader, self._signals
        if reader.in_transaction or signals.blocking or signals.incremental.running:
            return False
        return self._catch_up.passed or max(reader.position.lsn, reader.safe_lsn) >= self._log_end

    def _poll_once(self) -> EncodedRecords | Sequence[SourceRecord] | None:
        pause, self._pause = self._pause, 0.0
        if pause:
            self.context.wait(pause)
        try:
            records = self._poll()
        except Exception as error:
            self._disconnect()
            raise self._converted(error) from error
        self._failures = 0
        if records:
            self._newest = (records if isinstance(records, EncodedRecords) else records[-1]).source_offset or self._newest
            self._delay.polled(self._newest.get("ts_usec", 0) / 1e6)
        elif self._reader is not None:
            self._delay.caught_up()
        return records or None

    def _poll(self) -> EncodedRecords | list[SourceRecord]:
        waiting, self._encoded = self._encoded, None
        if waiting is not None:
            return waiting
        if not self._started:
            self._start_reading()
        if self._pending:
            records, self._pending = self._pending, []
            return records
        if self._snapshot is not None:
            common = self._config.common
            records, encoded = next_part(self._snapshot, common.batch_size, common.queue_bytes // _POLL_SHARE)
            last = encoded or (records[-1] if records else None)
            if last is not None:
                self._offset = dict(last.source_offset or {})
                return self._in_order(records, encoded)
            self._end_snapshot()
            return self._notifications.take(self._offset)
        if self._reader is None or self._receiver is None:
            self.context.wait(0.5)
            return []
        return self._stream(self._reader, self._receiver)

    def _start_reading(self) -> None:
        """Decide by offset and slot what to read, and begin."""
        config = self._config
        stored = self.context.offset_storage_reader.offset(self._emitter.partition)
        self._connection = connection = connect(config.address)
        self._types = TypeRegistry(connection.execute, config.settings)
        slot = find_slot(connection, config.slot)
        offset = self._offset or dict(stored or {})
        self._newest = self._newest or offset
        self._plan = plan = plan_start(config, offset or None, self._gap(stored_position(offset or None), slot))
        self._started = True
        if plan.snapshot and plan.stream and slot is not None and slot.lost:
            drop_slot(connection, config.slot)
            slot = None
        tables = list(filter(config.captured, self._checked_tables(connection)))
        if plan.stream:
            ensure_publication(connection, config, tables)
        chosen = list(filter(config.common.has_snapshot, config.in_list_order(tables)))
        if plan.snapshot:
            log_remains = may_continue_snapshot(config, slot) and self._gap(Position.of(offset), slot) is None
            if not log_remains or not self._continue_snapshot(offset, chosen):
                self._begin_snapshot(plan, chosen, slot_exists=slot is not None)
            return
        if (position := plan.position) is None:
            position = Position(lsn=first_lsn(config, slot))
            self._notifications.snapshot("SKIPPED")
            self._pending = self._notifications.take(None)
        self._start_stream(position, offset)

    def _checked_tables(self, connection: Connection) -> list[TableId]:
        """Return the database's tables; show which ones the config names that are not there."""
        tables = Catalog(connection).tables()
        self._missing.check(tables)
        return tables

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
        self._snapshot_reader = Snapshot(config, connection, self._types, self._emitter, position)
        self._notifications.snapshot("STARTED")
        self._offset = self._snapshot_reader.offset(completed=False)
        self._snapshot_reader.encodes = self._emitter.encodes_columns
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
            self._signals.finish_snapshot(whole, offset)
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
        self._signals = PostgresSignals(self._config, connection, self._types, self._emitter, self._notifications)
        self._signals.load(offset)
        self._reader = StreamReader(self._config, Catalog(connection), self._types, self._emitter, position, self._signals)
        if self._reader.transactions is not None:
            self._reader.transactions.load(offset)
        if self._server is None:
            self._server = read_identity(self._config.address)
        self._receiver = Receiver(self._config, position.start_lsn, connection.info.server_version, self.context.wake)
        self._busy = 0

    def _in_order(self, records: list[SourceRecord], encoded: EncodedRecords | None) -> EncodedRecords | list[SourceRecord]:
        """Return the records, and those encoded together at the next poll; these at once if there are no others."""
        if encoded is None or not records:
            return records if encoded is None else encoded
        self._encoded = encoded
        return records

    def _stream(self, reader: StreamReader, receiver: Receiver) -> EncodedRecords | list[SourceRecord]:
        """Return the records of the messages that have arrived; wait a little if there are none."""
        records = self._arrived(reader, receiver)
        if not records:
            self.context.wait(min(self._config.common.poll_interval, 0.5))
            records = self._arrived(reader, receiver)  # else the runtime waits, and has no wake-up to come
        return records

    def _arrived(self, reader: StreamReader, receiver: Receiver) -> EncodedRecords | list[SourceRecord]:
        records, encoded = self._received(reader, receiver)
        later = [] if reader.in_transaction else self._signals.poll(reader)
        later += self._heartbeat(reader)
        if (offset := reader.offset()) != self._read_offset:  # else the offset may have moved on without records
            self._read_offset = self._offset = offset
        if self._watch.due():
            self._watch.check(self._session)
        if self._missing.due():
            self._checked_tables(self._session)
        if encoded is not None:
            self._pending = later
            return self._in_order(records, encoded)
        return records + later

    def _received(self, reader: StreamReader, receiver: Receiver) -> tuple[list[SourceRecord], EncodedRecords | None]:
        """Return the records of the messages that have arrived, and those encoded together that come after these."""
        common, signals = self._config.common, self._signals
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
            if self._emitter.encodes_columns and not signals.incremental.running and not signals.blocking:
                encoded, end = reader.read_many(messages)
                if encoded is not None:
                    self._taken = messages[end:]
                    return records, encoded
            for message in messages[:end]:
                records += reader.read(message)
                records += signals.due(reader)
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

    def _heartbeat(self, reader: StreamReader) -> list[SourceRecord]:
        if not self._heartbeats.due():
            return []
        if query := self._config.common.heartbeat_query:
            try:
                self._session.execute(query)
            except driver().Error as error:
                log.warning("The heartbeat.action.query failed: %s", error)
        return [self._emitter.heartbeat(reader.offset())]

    def idle_offsets(self) -> Sequence[tuple[Partition, Offset]]:
        """Move the stored offset over log without records, which lets the server drop it: else an idle database's log grows.

        The offset of a start without records is stored at once: there would be nothing to move.
        """
        reader, newest = self._reader, self._newest
        if reader is None or reader.in_transaction or self._pending or self._encoded is not None:
            return ()
        offset = reader.offset()
        if newest and not requests_differ(newest, offset):
            distance = reader.safe_lsn - Position.of(newest).start_lsn
            if self._signals.incremental.running or distance <= 0 or (distance < _IDLE_BYTES and not reader.urgent):
                return ()
            self._awaited, reader.urgent = reader.urgent, False
            offset = moved_offset(newest, reader.safe_lsn)
        self._newest = self._offset = offset
        return [(self._emitter.partition, offset)]

    @property
    def commit_is_awaited(self) -> bool:
        """Whether the server has asked how far the log is stored: it ends only once all of it is."""
        return self._awaited

    def commit(self) -> None:
        """Acknowledge the position of the stored offset, as Debezium does: so either can go on behind the other."""
        if self._receiver is not None and self._config.flush and self._newest:
            self._receiver.acknowledge(Position.of(self._newest).start_lsn)
        self._awaited = False
        if self._reader is not None:
            self._signals.commit(self._newest)

    def metrics(self) -> Mapping[str, float]:
        return self._watch.values

    def source_lag(self) -> SourceLag:
        return SourceLag(self._delay.seconds, self._watch.values.get("log-behind-bytes"))

    @property
    def _session(self) -> Connection:
        if self._connection is None:
            raise ConnectError(f"Not connected to {self._config.address}")
        return self._connection

    def _converted(self, error: Exception) -> Exception:
        """Return the error that Connect sees: one that it retries if the connection was lost."""
        config, common = self._config, self._config.common
        if isinstance(error, SlotBusyError) and self._busy < config.slot_retries:
            self._busy += 1
            return self._retried(error, config.slot_retry_wait)
        lost = is_transient(error) and not isinstance(error, SlotBusyError)
        if lost and (common.max_retries < 0 or self._failures < common.max_retries):
            self._failures += 1
            return self._retried(error, common.retry_wait)
        return error if isinstance(error, ConnectError) else ConnectError(f"{config.address}: {error}")

    def _retried(self, error: Exception, seconds: float) -> RetriableError:
        log.warning("%s: reading again in %.0f s: %s", self._config.address, seconds, error)
        self._pause = seconds  # of the next poll: the runtime shows this error meanwhile
        return RetriableError(f"{self._config.address}: {error}")

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

    def stop(self) -> None:
        self._disconnect()
        if self._config.drop_slot:
            with connect(self._config.address) as connection:
                drop_slot(connection, self._config.slot)
