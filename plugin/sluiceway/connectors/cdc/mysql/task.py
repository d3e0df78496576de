"""The source tasks of the MariaDB and MySQL connectors."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from sluiceway.api import EncodedRecords, Offset, Partition, SourceLag, SourceRecord, SourceTask
from sluiceway.connectors.cdc.catch_up import CatchUp
from sluiceway.connectors.cdc.emitter import Emitter
from sluiceway.connectors.cdc.interval import Interval
from sluiceway.connectors.cdc.missing_tables import MissingTables
from sluiceway.connectors.cdc.mysql.buffer import RecordBuffer
from sluiceway.connectors.cdc.mysql.config import SourceConfig, source_config
from sluiceway.connectors.cdc.mysql.connection import Server
from sluiceway.connectors.cdc.mysql.log_watch import LogWatch
from sluiceway.connectors.cdc.mysql.reader import DatabaseReader
from sluiceway.connectors.cdc.signals import requests_differ
from sluiceway.connectors.cdc.source_delay import SourceDelay
from sluiceway.errors import ConnectError, RetriableError

log = logging.getLogger(__name__)

_IDLE_SECONDS = 30.0
_QUERY_SECONDS = 10.0


class BinlogSourceTask(SourceTask):
    """Returns the records that a thread reads. The source offset is Debezium's."""

    connector: ClassVar[str]

    _reader: DatabaseReader | None = None
    _server: Server | None = None

    def start(self, config: Mapping[str, str]) -> None:
        settings = source_config(config)
        common = settings.common
        self._settings: SourceConfig = settings
        self._emitter = Emitter(common, self.connector, self.context.converters)
        self._buffer = RecordBuffer(common.queue_size, common.queue_bytes, self.context.wake)
        self._heartbeats = Interval(common.heartbeat_interval)
        self._watch = LogWatch()
        self._missing = MissingTables(config, self.context.waiting)
        self._delay = SourceDelay()
        self._idle = Interval(_IDLE_SECONDS)
        self._newest: Offset | None = None
        self._later: list[SourceRecord] = []  # the records that the next poll returns
        stored = self.context.offset_storage_reader.offset(self._emitter.partition)
        self._reader = DatabaseReader(self.connector, settings, self._emitter, self._buffer, stored)
        self._catch_up = CatchUp(config, self.context, self._reader.caught_up)
        self._reader.catches_up = self._catch_up.wanted
        self._reader.passes = self._catch_up.passes if self._catch_up.has_interval else None
        self._reader.start()

    def poll(self) -> Sequence[SourceRecord] | None:
        return self._catch_up.poll(self._poll_records)

    def poll_columns(self) -> EncodedRecords | Sequence[SourceRecord] | None:
        self._emitter.encode_columns()
        return self._emitter.with_reason(self._catch_up.poll(self._poll_once))

    def _poll_records(self) -> Sequence[SourceRecord] | None:
        records = self._poll_once()
        assert not isinstance(records, EncodedRecords)  # noqa: S101 (only poll_columns allows these)
        return records

    def _poll_once(self) -> EncodedRecords | Sequence[SourceRecord] | None:
        common = self._settings.common
        records, self._later = self._later or self._buffer.take(common.batch_size), []
        if not len(records):
            self.context.wait(common.poll_interval)
            records = self._buffer.take(common.batch_size)
        if self._heartbeats.due():
            if isinstance(records, EncodedRecords):
                self._later = self._heartbeat()
            else:
                records += self._heartbeat()
        if self._watch.due():
            self._check_log()
        if self._missing.due():
            self._check_tables()
        if len(records):
            last = records if isinstance(records, EncodedRecords) else records[-1]
            self._newest = offset = last.source_offset or {}
            self._delay.polled(offset.get("ts_sec", 0))
        elif self._reader is not None and self._reader.connected:
            self._delay.caught_up()
        elif self._buffer.trouble is not None:
            raise RetriableError(self._buffer.trouble)  # so that the task's status shows it
        return records if len(records) else None

    def idle_offsets(self) -> Sequence[tuple[Partition, Offset]]:
        """Move the stored offset over log without records: else the server may have purged it at the next start.

        A micro-batch does so at its end, because the next one would read that log again. Requests of signals are stored at once,
        and the offset of a snapshot without records: else the next start would take another one, behind the changes until then.
        """
        offset, newest = self._buffer.offset, self._newest
        if offset is None or offset == newest:
            return ()
        if newest and not (self._catch_up.done or self._idle.due() or requests_differ(offset, newest)):
            return ()
        self._newest = offset
        return [(self._emitter.partition, offset)]

    def metrics(self) -> Mapping[str, float]:
        statements = 0 if self._reader is None else self._reader.statements.count
        return {**self._watch.values, "statements-without-rows": float(statements)}

    def source_lag(self) -> SourceLag:
        return SourceLag(self._delay.seconds, self._watch.values.get("log-behind-bytes"))

    def _check_log(self) -> None:
        if self._reader is None or not self._reader.reached[0]:
            return
        try:
            self._watch.check(self._open_server(), *self._reader.reached)
        except Exception as error:  # noqa: BLE001 (the driver's errors and lost connections)
            log.debug("The state of the binary log is unknown: %s", error)
            self._close_server()

    def _check_tables(self) -> None:
        """Show which tables the config names that the server does not have."""
        try:
            server = self._open_server()
            databases = filter(self._missing.concerns, server.databases())
            tables = [table for database in databases for table in server.tables(database)]
        except Exception as error:  # noqa: BLE001 (the driver's errors and lost connections)
            log.warning("Cannot check the tables of the config, trying again: %s", error)
            self._close_server()
        else:
            self._missing.check(tables)

    def commit(self) -> None:
        if self._reader is not None:
            self._reader.signals.commit(self._newest or {})

    def _heartbeat(self) -> list[SourceRecord]:
        query = self._settings.common.heartbeat_query
        if query is not None:
            self._execute(query)
        offset = self._buffer.offset
        return [] if offset is None else [self._emitter.heartbeat(offset)]

    def _execute(self, query: str) -> None:
        """Execute the heartbeat's statement; an error is only logged, because the next heartbeat tries again."""
        try:
            self._open_server().execute(query)
        except Exception as error:  # noqa: BLE001 (the driver's errors and lost connections)
            log.warning("heartbeat.action.query failed: %s", error)
            self._close_server()

    def _open_server(self) -> Server:
        if self._server is None:
            # ``poll`` waits for these queries.
            self._server = Server(replace(self._settings.connection, timeout=_QUERY_SECONDS, read_timeout=_QUERY_SECONDS))
        return self._server

    def _close_server(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            with contextlib.suppress(ConnectError):
                server.close()

    def stop(self) -> None:
        if self._reader is not None:
            self._reader.stop()
        self._close_server()


class MariaDbSourceTask(BinlogSourceTask):
    connector = "mariadb"


class MySqlSourceTask(BinlogSourceTask):
    connector = "mysql"
