"""The JDBC source's task: looks at its tables in turn. Executor."""

from __future__ import annotations

import dataclasses
import json
import logging
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sluiceway.api import SourceRecord, SourceTask
from sluiceway.connectors.jdbc.connection import Database
from sluiceway.connectors.jdbc.sink.errors import Kind, kind_of
from sluiceway.connectors.jdbc.source.config import BULK, RANGE, RANGE_PLAN, TABLES, source_config
from sluiceway.connectors.jdbc.source.deletes import SeenKeys
from sluiceway.connectors.jdbc.source.errors import explained
from sluiceway.connectors.jdbc.source.horizon import APPLICATION, Horizon, chosen_horizon
from sluiceway.connectors.jdbc.source.idle_cursors import IdleGuard
from sluiceway.connectors.jdbc.source.key_ranges import Plan
from sluiceway.connectors.jdbc.source.offsets import (
    PLAN_FIELD,
    QUERY_PARTITION,
    Position,
    old_table_partition,
    range_partition,
    table_partition,
)
from sluiceway.connectors.jdbc.source.row_streams import use_own_types
from sluiceway.connectors.jdbc.source.table_reader import TableReader, end_transaction
from sluiceway.connectors.jdbc.source.values import zone_of
from sluiceway.connectors.jdbc.url import POSTGRESQL
from sluiceway.errors import RetriableError

if TYPE_CHECKING:
    import sqlalchemy as sa

    from sluiceway.connectors.jdbc.dialects.base import TableId

log = logging.getLogger(__name__)

_PATIENCE_SECONDS = 0.5  # the longest that poll waits
_IDLE_SECONDS = 60.0  # the longest that a transaction stays open while nobody polls
_MISSES = 3  # looks in turn at a table that was not as it had been a moment before: more are no coincidence
_HELD_BACK_SECONDS = 0.2  # between looks at a table whose rows only wait for open transactions


class JdbcSourceTask(SourceTask):
    """Reads its tables one after the other, each at its interval, on one connection."""

    _database: Database | None = None
    _connection: sa.Connection | None = None
    _look: Iterator[list[SourceRecord]] | None = None
    _current: TableReader | None = None

    def start(self, config: Mapping[str, str]) -> None:
        self._config = settings = source_config(config)
        self._stopping = threading.Event()
        self._database = Database(for_reading(settings.connection), self._stopping.wait)
        self._horizon: Horizon | None = None
        self._ranges = Ranges.of(config)
        self._guard = IdleGuard(_IDLE_SECONDS, self._let_go)
        self._tables = [self._database.dialect.parse_table(name) for name in json.loads(config.get(TABLES) or "[]")]
        self._readers: list[TableReader] | None = None
        self._deletes_due: dict[int, float] = {}

    # --- readers ---

    def _make_readers(self, database: Database, horizon: Horizon) -> list[TableReader]:
        if self._config.query:
            stored = self.context.offset_storage_reader.offset(QUERY_PARTITION)
            return [TableReader(self._config, database, horizon, QUERY_PARTITION, position=self._position(stored))]
        if self._ranges.count > 1:
            return [each for table in self._tables for each in self._range_readers(database, horizon, table)]
        return self._table_readers(database, horizon)

    def _table_readers(self, database: Database, horizon: Horizon) -> list[TableReader]:
        partitions = [table_partition(table) for table in self._tables]
        old = [old_table_partition(table) for table in self._tables]
        offsets = self.context.offset_storage_reader.offsets([*partitions, *old])
        stored_by_table = zip(offsets[: len(old)], offsets[len(old) :], strict=True)
        found: list[TableReader] = []
        for table, partition, (new, earlier) in zip(self._tables, partitions, stored_by_table, strict=True):
            if new and PLAN_FIELD in new:  # there were ranges once, and maybe not all of them are read
                found += self._range_readers(database, horizon, table)
                continue
            found.append(
                TableReader(
                    self._config,
                    database,
                    horizon,
                    partition,
                    table=table,
                    position=self._position(new or earlier),
                    seen=self._seen(),
                )
            )
        return found

    def _seen(self) -> SeenKeys | None:
        return SeenKeys() if self._config.deletes_interval else None

    def _range_readers(self, database: Database, horizon: Horizon, table: TableId) -> list[TableReader]:
        """Return the readers of this task's ranges of a table; the one of the last range also reads what comes later.

        A plan that was begun counts, also where the config now asks for another number of ranges.
        """
        count, reader = self._ranges.count, self.context.offset_storage_reader
        usual = reader.offset(table_partition(table))
        planned = [range_partition(table, number, count) for number in range(count)]
        offsets = [usual, *reader.offsets(planned)]
        begun = next((str(offset[PLAN_FIELD]) for offset in offsets if offset and PLAN_FIELD in offset), None)
        found: list[TableReader] = []
        plan = Plan.parse(begun or self._ranges.plans[str(table)])
        if self._config.mode == BULK or begun is not None or not usual:
            partitions = [range_partition(table, number, plan.count) for number in range(plan.count)]
            stored = reader.offsets(partitions)
            for number in (each for each in range(plan.count) if each % count in self._ranges.numbers):
                position = Position() if stored[number] is None else Position.of(stored[number])
                found.append(
                    TableReader(
                        self._config,
                        database,
                        horizon,
                        partitions[number],
                        table=table,
                        position=position,
                        snapshot=plan.snapshot(number),
                        plan=plan.text,
                    )
                )
        if count - 1 in self._ranges.numbers and self._config.mode != BULK:
            position = self._position(usual) if usual else plan.follows
            found.append(
                TableReader(
                    self._config,
                    database,
                    horizon,
                    table_partition(table),
                    table=table,
                    position=position,
                    plan=plan.text if begun is not None or not usual else "",
                    seen=self._seen(),
                )
            )
        return found

    def _position(self, stored: Mapping[str, Any] | None) -> Position:
        """Return where to go on; what the mode does not go by is left out."""
        position = Position.of(stored)
        if not self._config.uses_incrementing:
            position = dataclasses.replace(position, incrementing=None)
        return position if self._config.uses_timestamp else dataclasses.replace(position, timestamp=None)

    # --- polling ---

    def poll(self) -> Sequence[SourceRecord] | None:
        if self._database is None or self._stopping.is_set():
            return None
        with self._guard.busy():
            return self._poll(self._database)

    def _poll(self, database: Database) -> Sequence[SourceRecord] | None:
        try:
            return self._next()
        except BaseException as error:
            reader = self._current
            self._break_off()
            told = explained(error, database, "the database" if reader is None else reader.name)
            if reader is not None and reader.table is not None and kind_of(error) is Kind.CHANGED and reader.misses < _MISSES:
                reader.misses += 1
                told = RetriableError(f"{reader.name} has changed since its columns were looked at: {told}")
            if told is error:
                raise
            raise told from error

    def _next(self) -> Sequence[SourceRecord] | None:
        """Return the next batch; None once no table that is due has one. At first that takes a look at every table, however long
        it lasts: who asks twice in vain (a run in micro-batch mode) takes it that there is nothing.
        """
        assert self._database is not None  # noqa: S101 (poll looks)
        until = time.monotonic() + _PATIENCE_SECONDS
        while (self._look is not None or self._begin(self._database)) and not self._stopping.is_set():
            assert self._look is not None  # noqa: S101 (begun)
            records = next(self._look, None)
            if records is not None:
                return records
            self._end_look()
            if time.monotonic() > until and all(reader.due for reader in self._readers or ()):
                break
        return None

    def _begin(self, database: Database) -> bool:
        """Begin the next look that is due; wait a little and return False if there is none."""
        if self._readers is None:
            connection = self._connect(database)
            if self._horizon is None:
                self._horizon = chosen_horizon(self._config, database, connection.connection.driver_connection)
                end_transaction(connection)
            self._readers = self._make_readers(database, self._horizon)
        due = min(self._readers, key=lambda reader: reader.due, default=None)
        wait = _PATIENCE_SECONDS if due is None else due.due - time.monotonic()
        if due is None or wait > 0:
            self._stopping.wait(min(wait, _PATIENCE_SECONDS))
            return False
        self._current = due
        self._look = self._whole_look(due, self._connect(database))
        return True

    def _whole_look(self, reader: TableReader, connection: sa.Connection) -> Iterator[list[SourceRecord]]:
        began = time.monotonic()
        yield from reader.look(connection)
        if reader.seen is not None and not reader.gone and began >= self._deletes_due.get(id(reader), 0.0):
            yield from deleted_rows(reader, connection)
            self._deletes_due[id(reader)] = began + self._config.deletes_interval
        reader.due = began + interval_of(self._config.poll_interval, reader.held_back)

    def _end_look(self) -> None:
        reader, self._look, self._current = self._current, None, None
        assert self._readers is not None and reader is not None  # noqa: S101, PT018 (a look had begun)
        reader.misses = 0
        if reader.gone:
            # The connector takes it away from this task, unless it is there again by then.
            log.info("%s is gone: it is looked for again in %g s", reader.name, self._config.table_poll_interval)
            reader.due = time.monotonic() + self._config.table_poll_interval
        elif reader.finished and self._config.mode != BULK:
            log.info("Range %s of %s is read", reader.partition.get("range"), reader.name)
            self._readers.remove(reader)
        elif reader.finished:  # a bulk source begins again
            reader.position, reader.finished = Position(), False

    def _connect(self, database: Database) -> sa.Connection:
        if self._connection is None:
            self._connection = database.connect()
            zone = zone_of(self._config.connection.timezone)
            use_own_types(database.dialect.name, self._connection.connection.driver_connection, zone)
        return self._connection

    def _break_off(self) -> None:
        """Drop a look and the connection; the next poll begins anew behind the last batch that was given."""
        look, self._look, self._current = self._look, None, None
        if look is not None:
            look.close()  # type: ignore[attr-defined]
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.invalidate()
                connection.close()
            except Exception as error:  # noqa: BLE001 (it is broken, or it is the end)
                log.debug("Closing the connection: %s", error)

    def _let_go(self, idle: float) -> None:
        """Hold no transaction while nobody polls, unless all that was read would be read again. Called by the guard's thread."""
        if self._look is not None and self._current is not None and (self._config.mode != BULK or self._ranges.count > 1):
            log.info("Nobody has polled for %.0f s: reading %s is broken off, to go on later", idle, self._current.name)
            self._break_off()

    def stop(self) -> None:
        if self._database is None:
            return
        self._stopping.set()
        self._guard.stop()
        self._break_off()
        for reader in self._readers or ():
            if reader.seen is not None:
                reader.seen.close()
        self._database.dispose()
        self._readers = []


def interval_of(usual: float, held_back: float | None) -> float:
    """Return the seconds from one look at a table to the next: fewer where rows wait, but not for long. Pure."""
    return usual if held_back is None else min(usual, max(_HELD_BACK_SECONDS, held_back / 10))


def deleted_rows(reader: TableReader, connection: sa.Connection) -> Iterator[list[SourceRecord]]:
    """Compare a table's primary keys with those seen; give tombstones for those that are gone."""
    assert reader.seen is not None  # noqa: S101 (asked for)
    for keys in reader.current_keys(connection):
        reader.seen.add(keys)
    for keys in reader.seen.missing():
        yield reader.tombstones(keys)


class Ranges:
    """Which ranges of its tables' first snapshots a task reads."""

    def __init__(self, count: int, numbers: Sequence[int], plans: Mapping[str, str]) -> None:
        self.count, self.numbers, self.plans = count, numbers, plans

    @classmethod
    def of(cls, config: Mapping[str, str]) -> Ranges:
        numbers, _, count = (config.get(RANGE) or "0/1").partition("/")
        return cls(int(count), [int(each) for each in numbers.split(",") if each], json.loads(config.get(RANGE_PLAN) or "{}"))


def for_reading(settings: Any) -> Any:
    """Return the settings under the name that the horizon knows our own sessions by."""
    if settings.url.dialect != POSTGRESQL:
        return settings
    options = {**settings.url.options, "application_name": APPLICATION}
    return dataclasses.replace(settings, url=dataclasses.replace(settings.url, options=options))
