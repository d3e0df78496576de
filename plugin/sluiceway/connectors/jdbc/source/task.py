"""The JDBC source's task: reads its tables in turn, each at its interval. Runs on the executors."""

from __future__ import annotations

import dataclasses
import logging
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from sluiceway.api import SourceColumns, SourceLag, SourceRecord, SourceTask
from sluiceway.connectors.jdbc.connection import Database
from sluiceway.connectors.jdbc.connection_keys import ConnectionSettings
from sluiceway.connectors.jdbc.dialects import dialect_class
from sluiceway.connectors.jdbc.dialects.errors import ErrorKind
from sluiceway.connectors.jdbc.dialects.values import zone_of
from sluiceway.connectors.jdbc.source.config import SourceConfig, source_config
from sluiceway.connectors.jdbc.source.errors import as_connect_error
from sluiceway.connectors.jdbc.source.horizon import horizon_for
from sluiceway.connectors.jdbc.source.keys import BULK
from sluiceway.connectors.jdbc.source.offsets import Position
from sluiceway.connectors.jdbc.source.readers import ReaderFactory, TableAssignment
from sluiceway.connectors.jdbc.source.table_reader import Batch, TableReader, end_transaction
from sluiceway.errors import RetriableError

if TYPE_CHECKING:
    import sqlalchemy as sa

    from sluiceway.connectors.jdbc.dialects.horizon import Horizon


log = logging.getLogger(__name__)

_PATIENCE_SECONDS = 0.5  # the longest that poll waits
_IDLE_SECONDS = 60.0  # the longest that a transaction stays open without a poll
_MAX_CHANGES = 3  # passes in a row that fail because the table changed meanwhile; more are not a coincidence
_HELD_BACK_SECONDS = 0.2  # the shortest interval for a table whose rows wait for open transactions
_CHECK_SECONDS = 5.0


class _Pass(NamedTuple):
    """A pass over a table that has begun."""

    reader: TableReader
    batches: Generator[Batch]


class JdbcSourceTask(SourceTask):
    """Reads its tables one after the other, over one connection."""

    _config: SourceConfig
    _database: Database | None = None
    _connection: sa.Connection | None = None
    _pass: _Pass | None = None
    _readers: list[TableReader] | None = None
    _horizon: Horizon | None = None

    def start(self, config: Mapping[str, str]) -> None:
        self._config = settings = source_config(config)
        self._stopping = threading.Event()
        self._guard = IdleGuard(_IDLE_SECONDS, self._release)
        self._deletes_due: dict[int, float] = {}
        self._database = database = Database(reading_settings(settings.connection), self._stopping.wait, self.context.waiting)
        self._assignment = TableAssignment.of(config, database)

    def poll(self) -> Sequence[SourceRecord] | None:
        polled = self._poll(as_columns=False)
        return polled.records() if isinstance(polled, SourceColumns) else polled

    def poll_columns(self) -> SourceColumns | Sequence[SourceRecord] | None:
        return self._poll(as_columns=True)

    def _poll(self, *, as_columns: bool) -> Batch | None:
        if self._database is None or self._stopping.is_set():
            return None
        with self._guard.polling():
            return self._next_or_error(self._database, as_columns=as_columns)

    def _next_or_error(self, database: Database, *, as_columns: bool) -> Batch | None:
        try:
            return self._next(database, as_columns=as_columns)
        except BaseException as error:
            reader = None if self._pass is None else self._pass.reader
            self._abandon()
            converted = as_connect_error(error, database, "the database" if reader is None else reader.name)
            if reader is not None and self._changed_meanwhile(database, reader, error):
                converted = RetriableError(f"{reader.name} changed after its columns were read: {converted}")
            if converted is error:
                raise
            raise converted from error

    @staticmethod
    def _changed_meanwhile(database: Database, reader: TableReader, error: BaseException) -> bool:
        if reader.table is None or database.dialect.error_kind(error) is not ErrorKind.CHANGED:
            return False
        reader.changes += 1
        return reader.changes <= _MAX_CHANGES

    def _next(self, database: Database, *, as_columns: bool) -> Batch | None:
        """Return the next batch; None if no table that is due has new rows.

        The first call polls every table, however long that takes: after two polls without records, a run in micro-batch mode
        ends.
        """
        until = time.monotonic() + _PATIENCE_SECONDS
        while not self._stopping.is_set():
            current = self._pass or self._begin(database)
            if current is None:
                return None
            self._pass = current
            current.reader.as_columns = as_columns
            records = next(current.batches, None)
            if records is not None:
                return records
            self._end_pass(current.reader)
            if time.monotonic() > until and all(reader.due for reader in self._readers or ()):
                return None
        return None

    def _begin(self, database: Database) -> _Pass | None:
        """Return the next pass that is due; wait a little and return None if there is none."""
        if self._readers is None:
            self._readers = self._make_readers(database)
        due = min(self._readers, key=lambda reader: reader.due, default=None)
        wait = _PATIENCE_SECONDS if due is None else due.due - time.monotonic()
        if due is None or wait > 0:
            self._stopping.wait(min(wait, _PATIENCE_SECONDS))
            return None
        return _Pass(due, self._batches(due, self._connect(database)))

    def _make_readers(self, database: Database) -> list[TableReader]:
        connection = self._connect(database)
        if self._horizon is None:
            self._horizon = horizon_for(self._config, database, connection.connection.driver_connection)
            end_transaction(connection)
        offsets = self.context.offset_storage_reader
        return ReaderFactory(self._config, database, self._horizon, self._assignment, offsets).readers()

    def _batches(self, reader: TableReader, connection: sa.Connection) -> Generator[Batch]:
        """Yield the batches of a pass, and the tombstones of deleted rows if those are due."""
        began = time.monotonic()
        yield from reader.read(connection)
        reader.passed(began)
        if reader.seen is not None and not reader.gone and began >= self._deletes_due.get(id(reader), 0.0):
            yield from reader.deleted_rows(connection, reader.seen)
            self._deletes_due[id(reader)] = began + self._config.deletes_interval
        reader.due = began + interval_of(self._config.poll_interval, reader.held_back)

    def _end_pass(self, reader: TableReader) -> None:
        self._pass = None
        reader.changes = 0
        if reader.gone:
            # The connector takes the table away from this task, unless it exists again by then.
            log.info("%s is gone: checking again in %g s", reader.name, self._config.table_poll_interval)
            reader.due = time.monotonic() + self._config.table_poll_interval
        elif reader.finished and self._config.mode != BULK:
            log.info("Range %s of %s has been read", reader.partition.get("range"), reader.name)
            self._readers = [each for each in self._readers or () if each is not reader]
        elif reader.finished:  # bulk mode reads the range again
            reader.position, reader.finished = Position(), False

    def _connect(self, database: Database) -> sa.Connection:
        if self._connection is None:
            self._connection = database.connect()
            zone = zone_of(self._config.connection.timezone)
            database.dialect.prepare_for_reading(self._connection.connection.driver_connection, zone)
        return self._connection

    def _abandon(self) -> None:
        """Drop the current pass and the connection; the next poll continues after the last batch."""
        current, self._pass = self._pass, None
        if current is not None:
            current.batches.close()
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.invalidate()
                connection.close()
            except Exception as error:  # noqa: BLE001 (the connection is broken, or the task stops)
                log.debug("Closing the connection: %s", error)

    def _release(self, idle: float) -> None:
        """Give up the transaction of a pass after ``idle`` seconds without a poll. Runs on the guard's thread.

        A bulk pass keeps it, because it would start over.
        """
        current = self._pass
        if current is not None and (self._config.mode != BULK or self._assignment.count > 1):
            log.info("No poll for %.0f s: releasing the transaction that reads %s until the next one", idle, current.reader.name)
            self._abandon()

    @property
    def ended(self) -> bool | None:
        """Whether all tables were read to the end of the run's interval; None if it is for none."""
        if self._config.interval is None:
            return None
        return self._readers is not None and all(reader.reached_end or reader.gone for reader in self._readers)

    def source_lag(self) -> SourceLag:
        """Return the lag of the table that is furthest behind."""
        now = time.monotonic()
        lags = [lag for reader in self._readers or () if (lag := reader.lag(now)) is not None]
        return SourceLag(max(lags, default=None))

    def stop(self) -> None:
        if self._database is None:
            return
        self._stopping.set()
        self._guard.stop()
        self._abandon()
        for reader in self._readers or ():
            if reader.seen is not None:
                reader.seen.close()
        self._database.dispose()
        self._readers = []


def interval_of(poll_interval: float, held_back: float | None) -> float:
    """Return the seconds between two passes over a table: fewer for a while if rows wait for open transactions. No I/O."""
    return poll_interval if held_back is None else min(poll_interval, max(_HELD_BACK_SECONDS, held_back / 10))


def reading_settings(settings: ConnectionSettings) -> ConnectionSettings:
    """Return settings that mark the sessions as the source's own, which safe horizons leave out."""
    options = {**settings.url.options, **dialect_class(settings.url.dialect).reading_options}
    return dataclasses.replace(settings, url=dataclasses.replace(settings.url, options=options))


class IdleGuard:
    """Calls ``on_idle`` with the idle seconds after ``seconds`` without a poll; never while a poll runs.

    ``on_idle`` runs on a thread of this class.
    """

    def __init__(self, seconds: float, on_idle: Callable[[float], None]) -> None:
        self._seconds = seconds
        self._on_idle = on_idle
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._last = time.monotonic()
        self._thread: threading.Thread | None = None

    @contextmanager
    def polling(self) -> Iterator[None]:
        """Hold off ``on_idle`` during a poll. The first call starts the thread."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, name="jdbc-source-idle", daemon=True)
            self._thread.start()
        with self._lock:
            try:
                yield
            finally:
                self._last = time.monotonic()

    def stop(self) -> None:
        """Stop the thread and wait for it."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self) -> None:
        while not self._stopped.wait(min(self._seconds, _CHECK_SECONDS)):
            with self._lock:
                idle = time.monotonic() - self._last
                if idle >= self._seconds:
                    self._on_idle(idle)
