"""Reads a database on a thread of its own: decides between snapshot and log, and reconnects after errors."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from sluiceway.api import SourceRecord
from sluiceway.connectors.cdc.catch_up import CatchUp
from sluiceway.connectors.cdc.config import CommonConfig
from sluiceway.connectors.cdc.emitter import Emitter
from sluiceway.connectors.cdc.mysql.binlog.events import GTIDS, Header
from sluiceway.connectors.cdc.mysql.binlog.stream import BinlogStream, LogEndedError, ServerError, StartPosition
from sluiceway.connectors.cdc.mysql.binlog.temporal import Calendar
from sluiceway.connectors.cdc.mysql.buffer import RecordBuffer, StoppedError
from sluiceway.connectors.cdc.mysql.catalog import Catalog
from sluiceway.connectors.cdc.mysql.chunks import file_number, log_position
from sluiceway.connectors.cdc.mysql.config import SourceConfig
from sluiceway.connectors.cdc.mysql.connection import Server, connect, dump_error, in_words, is_transient
from sluiceway.connectors.cdc.mysql.ddl.model import Tables
from sluiceway.connectors.cdc.mysql.fields import FieldSettings
from sluiceway.connectors.cdc.mysql.history import SchemaHistory
from sluiceway.connectors.cdc.mysql.log_state import find_gap, lost_message
from sluiceway.connectors.cdc.mysql.logged_statements import LoggedStatements
from sluiceway.connectors.cdc.mysql.offsets import INITIAL, SNAPSHOT_KEY, BlockingPosition, LogPosition
from sluiceway.connectors.cdc.mysql.prepared import PreparedTransactions
from sluiceway.connectors.cdc.mysql.schema_changes import SchemaChanges
from sluiceway.connectors.cdc.mysql.second_dump import second_dump
from sluiceway.connectors.cdc.mysql.signals import IDLE_SECONDS, BinlogSignals
from sluiceway.connectors.cdc.mysql.snapshot import Snapshot
from sluiceway.connectors.cdc.mysql.streaming import Streaming
from sluiceway.connectors.cdc.mysql.streaming_parts import StreamingParts
from sluiceway.connectors.cdc.mysql.table_ranges import table_to_read
from sluiceway.connectors.cdc.mysql.table_reader import read_table
from sluiceway.connectors.cdc.notifications import Notifications
from sluiceway.connectors.cdc.ranges import PROGRESS, rest
from sluiceway.connectors.cdc.retries import Attempts
from sluiceway.connectors.cdc.signals import BlockingRequest
from sluiceway.connectors.cdc.transactions import TransactionCounter
from sluiceway.errors import ConnectError, RetriableError

log = logging.getLogger(__name__)

_LOG_GONE_CODE = 1236
_DATA_MODES = frozenset({"initial", "always", "initial_only", "when_needed"})
_RETRIED = (LogEndedError, RetriableError, OSError)


class DatabaseReader:
    """Fills a buffer with the records of a database, until ``stop``.

    Args:
        connector: mariadb or mysql.
        offset: the stored offset, or None.
        catch_up: which end of the log the run has.
    """

    def __init__(
        self,
        connector: str,
        config: SourceConfig,
        emitter: Emitter,
        buffer: RecordBuffer,
        offset: Mapping[str, Any] | None,
        catch_up: CatchUp,
    ) -> None:
        self._connector = connector
        self._config = config
        self._emitter = emitter
        self._buffer = buffer
        self._offset = offset
        self._catch_up = catch_up
        self._tables = Tables(keep_comments=config.flag("include.schema.comments"))
        self._position = LogPosition(connector, config.common.prefix)
        self._counter = TransactionCounter()
        self._notifications = Notifications(config.common, emitter)
        self._history = SchemaHistory(config.history, config.common.prefix)
        self._calendar = Calendar(adjust_years=config.flag("enable.time.adjuster"))
        common = config.common
        settings = FieldSettings(
            decimal_mode=common.decimal_mode,
            binary_mode=common.binary_mode,
            time_mode=common.time_mode,
            bigint_unsigned_mode=config.choice("bigint.unsigned.handling.mode"),
            placeholder=common.placeholder,
            calendar=self._calendar,
            correct=common.correct,
        )
        self._catalog = Catalog(common.schemas(self._position.schema), settings, common.config)
        self._read_table = partial(read_table, config.connection, self._tables, self._position)
        self._changes = self._schema_changes(self._tables, self._position)
        self.statements = LoggedStatements(config, self._tables)
        self._server: Server | None = None
        self._stream: BinlogStream | None = None
        self._streaming: Streaming | None = None
        self._lock = threading.Lock()
        self._retries = RetriedSteps(common, buffer, lambda: (self._position.file, self._position.position), self._disconnected)
        self._running_snapshot: Snapshot | None = None
        self.connected = False  # whether the log is being received
        self._log_end: tuple[int, int] | None = None
        self.signals = BinlogSignals(config, emitter, self._position, self._catalog, self._tables, self._notifications)
        self._prepared = PreparedTransactions(self._position)
        self._thread = threading.Thread(target=self._run, name=f"{connector}-reader-{common.prefix}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def caught_up(self) -> bool:
        """Whether all records are taken up to the end that the log had when reading it began."""
        end, position = self._log_end, self._position
        if self._thread.is_alive() and (
            end is None or position.in_transaction or self.signals.incremental.running or log_position(position) < end
        ):
            return False
        return not (self._streaming and self._streaming.has_collected) and self._buffer.is_drained()

    def stop(self) -> None:
        """Stop reading; returns when the thread has ended."""
        self._buffer.stop()
        with self._lock:
            stream, server, snapshot = self._stream, self._server, self._running_snapshot
        if stream is not None:
            stream.close()
        if snapshot is not None:
            snapshot.close()
        if server is not None:
            server.shut()
        if self._thread.is_alive():
            self._thread.join(30)
        self.signals.close()
        self._history.close()

    @property
    def reached(self) -> tuple[str, int, int]:
        """The file, the position, and the time in seconds since the epoch of the last event that was read. Any thread may ask."""
        position = self._position
        return position.file, position.position, position.seconds

    # -- the thread

    def _run(self) -> None:
        try:
            self._read()
        except StoppedError:
            pass
        except Exception as error:  # noqa: BLE001 (the task's thread raises it)
            if not self._buffer.is_stopped():
                self._buffer.fail(error)
        finally:
            self._close_server()

    def _read(self) -> None:
        retries = self._retries
        retries.run(self._prepare)
        if self._config.common.snapshots.mode == "initial_only":
            log.info("The snapshot is complete, and snapshot.mode is initial_only: no changes are read.")
            return
        retries.run(self._stream_log)

    def _disconnected(self) -> None:
        self.connected = False
        self._close_server()

    def _open_server(self) -> Server:
        with self._lock:
            if self._server is None:
                self._server = Server(self._config.connection)
            return self._server

    def _close_server(self) -> None:
        with self._lock:
            server, self._server = self._server, None
        if server is not None:
            server.close()

    # -- what to do at the start

    def _prepare(self) -> None:
        """Load the stored position and the schema history, and take a snapshot if the mode says so."""
        self._history.create()
        server = self._open_server()
        self._tables.mariadb, self._tables.lower_case = server.mariadb, server.lower_case
        self._config.check_names(lower_case=server.lower_case)
        offset = self._offset
        if offset is not None and offset.get(SNAPSHOT_KEY) and self._continue_snapshot(offset):
            return
        if offset is None or offset.get(SNAPSHOT_KEY) or self._config.common.snapshots.mode == "always":
            self._start_without_offset()
            return
        self._position.load(offset)
        self._counter.load(offset)
        self._prepared.load(offset)
        gap = find_gap(self._position.start, self._open_server().log_state(), self._config.gtid_sources)
        if gap is not None:
            if not self._snapshots_a_gap():
                raise ConnectError(lost_message(self._position.start, gap))
            log.warning("%s Taking a new snapshot, because of snapshot.mode.", gap)
            self._counter.end()
            self._snapshot(data=True)
            return
        self._recover(offset)
        self._notifications.snapshot("SKIPPED")
        self._buffer.put(self._notifications.take(offset))

    def _snapshots_a_gap(self) -> bool:
        mode, config = self._config.common.snapshots.mode, self._config
        on_error = config.flag("snapshot.mode.configuration.based.snapshot.on.data.error")
        return mode == "when_needed" or (mode == "configuration_based" and on_error)

    def _recover(self, offset: Mapping[str, Any]) -> None:
        wanted = self._config.common.snapshots.mode == "recovery"
        if wanted:
            log.info("Reading the tables' structures from the server, because of snapshot.mode=recovery.")
        elif self._history.recover(offset, self._tables):
            return
        else:
            text = "The schema history topic '%s' has no records of this connector; tables are read from the server."
            log.warning(text, self._history.topic)
        self._recover_from_server(report=wanted)

    def _recover_from_server(self, *, report: bool) -> None:
        """Fill the model, and the schema history, with the tables as they are now; make schema change records if asked."""
        position, skips, server = self._position.start, self._position.skips, self._open_server()
        snapshot = self._new_snapshot(server, self._buffer if report else RecordBuffer(1 << 30, 1 << 60, lambda: None))
        snapshot.read_structures()
        snapshot.pass_last()
        self._position.start_at(position)
        self._position.resume_at(*skips)

    def _continue_snapshot(self, offset: Mapping[str, Any]) -> bool:
        """Read the rest of an interrupted snapshot beside the log, from its position on. Return False if all is left."""
        config = self._config
        mode, streams = config.common.snapshots.mode, config.flag("snapshot.mode.configuration.based.start.stream")
        if PROGRESS not in offset or not (mode in ("initial", "when_needed") or (mode == "configuration_based" and streams)):
            return False
        self._position.load(offset)
        gap = find_gap(self._position.start, self._open_server().log_state(), self._config.gtid_sources)
        if gap is not None or not self._history.recover(offset, self._tables):
            return False
        found = self._tables.tables.items()
        tables = [each for table, each in found if config.captures(table) and config.common.has_snapshot(table)]
        left = rest(offset, [table_to_read(each, config, {}) for each in tables])
        if left is None:
            return False
        requests, whole = left
        log.info(
            "Continuing the initial snapshot: %d ranges of keys and %d tables without key are left.", len(requests), len(whole)
        )
        self.signals.start(offset)
        self.signals.incremental.resume_requests(requests)
        if whole:
            self._position.snapshot(INITIAL)
            self.signals.finish_snapshot(whole, {PROGRESS: offset[PROGRESS]})
        return True

    def _start_without_offset(self) -> None:
        mode, config = self._config.common.snapshots.mode, self._config
        if mode == "custom":
            raise ConnectError("snapshot.mode=custom needs a Java snapshotter, which cannot be loaded. Choose another mode.")
        if mode == "recovery":
            raise ConnectError(
                "Could not find existing binlog information while attempting schema only recovery snapshot. Choose another "
                "snapshot.mode: recovery needs the stored offset of an earlier run."
            )
        if mode == "never":
            self._start_at_oldest()
            return
        data = mode in _DATA_MODES
        if mode == "configuration_based":
            data = config.flag("snapshot.mode.configuration.based.snapshot.data")
            if not data and not config.flag("snapshot.mode.configuration.based.snapshot.schema"):
                self._start_at_oldest()
                return
        self._snapshot(data=data)

    def _start_at_oldest(self) -> None:
        if not (files := self._open_server().log_files()):
            raise ConnectError("The server has no binary log. Start it with log_bin.")
        self._position.start_at(StartPosition(files[0], 4))

    def _new_snapshot(self, server: Server, buffer: RecordBuffer) -> Snapshot:
        snapshot = Snapshot(
            config=self._config,
            server=server,
            tables=self._tables,
            catalog=self._catalog,
            changes=self._changes,
            emitter=self._emitter,
            position=self._position,
            buffer=buffer,
            notifications=self._notifications,
        )
        with self._lock:
            self._running_snapshot = snapshot
        return snapshot

    def _snapshot(self, *, data: bool) -> None:
        delay = int(str(self._config.values["snapshot.delay.ms"] or 0)) / 1000
        if delay and self._buffer.wait_stopped(delay):
            raise StoppedError
        self._tables.tables.clear()
        self._new_snapshot(self._open_server(), self._buffer).run(data=data)
        self._close_server()

    def _ends_before(self, header: Header) -> bool:
        """Return whether an event begins the first transaction behind the interval of the run.

        A snapshot beside the log needs what follows, to know which rows have changed since.
        """
        if header.type not in GTIDS or self.signals.incremental.running or self.signals.blocking:
            return False
        return self._catch_up.passes(header.timestamp * 1_000_000)

    def _after_event(self) -> list[SourceRecord]:
        """Return the records of incremental snapshots; read tables while the log waits, for blocking ones."""
        records = self.signals.after_event()
        while self.signals.blocking and not self._position.in_transaction:
            self._blocking_snapshot(self.signals.blocking[0])
            self._position.snapshot(None)
        while self.signals.returned_chunk:  # an idle log must not wait for the next heartbeat
            self._buffer.put(records)
            records = self.signals.after_event()
        return records

    def _blocking_snapshot(self, request: BlockingRequest) -> None:
        try:
            with Server(self._config.connection) as server:
                self._read_blocking(server, request)
            self.signals.blocking_ended(request)
        except Exception as error:  # noqa: BLE001 (it raises what the task must see)
            self.signals.blocking_ended(request, error)

    def _read_blocking(self, server: Server, request: BlockingRequest) -> None:
        """Read the tables of a request as they are now, which the log may not have reached: the model stays that of the log."""
        start, snapshot = server.snapshot_position(), self._new_snapshot(server, self._buffer)
        snapshot.position = BlockingPosition(self._connector, self._config.common.prefix, start, self._position)
        own = request.signal is not None  # else the rest of the initial snapshot, whose structures are known
        if own:
            snapshot.tables = self._tables.empty()
            snapshot.changes = self._schema_changes(snapshot.tables, snapshot.position)
        snapshot.run_blocking(request.tables, request.conditions, structures=own)

    def _schema_changes(self, tables: Tables, position: LogPosition) -> SchemaChanges:
        return SchemaChanges(self._config, tables, self._history, self._emitter, position, self._connector, self._read_table)

    # -- the log

    def _stream_log(self) -> None:
        streams = self._config.flag("snapshot.mode.configuration.based.start.stream")
        if self._config.common.snapshots.mode == "configuration_based" and not streams:
            return
        server = self._open_server()
        gap = find_gap(self._position.start, server.log_state(), self._config.gtid_sources)
        if gap is not None:  # after a lost connection: the server may be another one now
            raise ConnectError(lost_message(self._position.start, gap))
        parts = StreamingParts(
            config=self._config,
            tables=self._tables,
            catalog=self._catalog,
            changes=self._changes,
            statements=self.statements,
            emitter=self._emitter,
            position=self._position,
            counter=self._counter,
            buffer=self._buffer,
            charsets=server.charsets(),
            calendar=self._calendar,
            mariadb=server.mariadb,
            read_table=self._read_table,
            prepared=self._prepared,
            second_dump=partial(second_dump, self._config, mariadb=server.mariadb),
        )
        self.signals.start(self._offset or {})
        active = self.signals.active
        start = self._position.rewind()
        if self._catch_up.wanted and self._log_end is None:
            end = server.position()
            if start.gtids and start.gtids == end.gtids and not active:
                return  # a dump by GTIDs shows that only by its first heartbeat
            self._log_end = (file_number(end.file), end.position)
        self._close_server()
        stream = BinlogStream(
            connect(replace(self._config.connection, statements=())),
            self._config.server_id,
            mariadb=parts.mariadb,
            annotations=self._config.flag("include.query"),
            heartbeat=IDLE_SECONDS if active or self._catch_up.wanted else None,
        )
        with self._lock:
            self._stream = stream
        streaming = Streaming(parts, self.signals.on_row, self._after_event) if active else Streaming(parts)
        self._streaming = streaming
        log.info("Reading the binary log from %s:%s (%s).", start.file, start.position, start.gtids or "no GTID")
        try:
            if self._buffer.is_stopped():  # while the connection was opened: stop() has not closed it
                return
            stream.start(start)
            self.connected = True
            self._retries.healed()
            streaming.run(stream.packets(), stream.is_idle, self._ends_before if self._catch_up.has_interval else None)
        except ServerError as error:
            if error.code == _LOG_GONE_CODE:
                raise ConnectError(lost_message(start, f"The server says: {error}")) from error
            raise dump_error(error) from error
        finally:
            stream.close()
            self.signals.disconnect()


class RetriedSteps:
    """Runs steps on the reading thread. The buffer's ``trouble`` is the error of the last attempt, until ``healed``.

    Args:
        reached: returns how far the log is read. Attempts between which it has moved are not counted.
        failed: called after each attempt that failed.
    """

    def __init__(
        self, config: CommonConfig, buffer: RecordBuffer, reached: Callable[[], object], failed: Callable[[], None]
    ) -> None:
        self._config = config
        self._buffer = buffer
        self._reached_now = reached
        self._failed = failed
        self._reached: object = None

    def run(self, step: Callable[[], None]) -> None:
        """Run a step until it ends without an error, or the task stops. Raises errors that will not heal."""
        retries = Attempts(self._config.max_retries, self._config.retry_wait, "errors.max.retries")
        while not self._buffer.is_stopped():
            try:
                step()
            except StoppedError:
                raise
            except Exception as error:
                if self._buffer.is_stopped():
                    return
                final = in_words(error)
                if final is error and not isinstance(error, _RETRIED):
                    raise
                if not isinstance(error, _RETRIED) and not is_transient(error):
                    raise final from error
                if self._progressed():
                    retries.healed()
                self._failed()
                self._buffer.trouble = str(retries.failed(error))
                if self._buffer.wait_stopped(retries.wait):
                    return
            else:
                self.healed()
                return

    def healed(self) -> None:
        """Note that the database is read again."""
        self._buffer.trouble = None

    def _progressed(self) -> bool:
        """Return whether the log was read further since the last call."""
        before, self._reached = self._reached, self._reached_now()
        return before != self._reached
