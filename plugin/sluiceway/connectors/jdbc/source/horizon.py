"""How far may be read so that nothing can appear behind it any more: a transaction that commits late has older times and numbers.

A row's time or number is taken while its transaction runs, and seen by others only once that has committed. So the horizon
is taken from the transactions that the database says are open, and from its clock alone:

- times: the start of the oldest open transaction, or now. PostgreSQL: ``pg_stat_activity.xact_start``; it shows other users'
  sessions to members of ``pg_read_all_stats`` (``pg_monitor``). MariaDB and MySQL: ``information_schema.innodb_trx``, for which
  a user needs the PROCESS privilege.
- numbers: the highest number, once the transactions have ended that had locked the table for writing when it was the
  highest. PostgreSQL: ``pg_locks``, which everybody may read. MariaDB and MySQL: ``innodb_trx`` again.

SQLite has one writer at a time, and needs none of this. Executor.
"""

from __future__ import annotations

import abc
import datetime as dt
import logging
import time
from typing import TYPE_CHECKING, Any

from sluiceway.connectors.jdbc.dialects.base import Dialect, TableId
from sluiceway.connectors.jdbc.source.config import AUTO, BULK, NONE, SourceConfig
from sluiceway.connectors.jdbc.source.values import UTC
from sluiceway.connectors.jdbc.url import MYSQL, POSTGRESQL
from sluiceway.errors import ConnectError

if TYPE_CHECKING:
    from sluiceway.connectors.jdbc.connection import Database

log = logging.getLogger(__name__)

APPLICATION = "sluiceway-jdbc-source"
"""What our own sessions call themselves in PostgreSQL: they only read, so nobody waits for them."""

_CACHE_SECONDS = 0.11  # how long InnoDB's list of transactions is not renewed after somebody has read it
_CACHE_TRIES = 50


class Horizon(abc.ABC):
    """Asks one database. Each question takes a connection of the driver with no transaction open."""

    hint = ""
    """What to do where the user may not see other sessions."""
    coarse = True
    """Whether starts of transactions are told in whole seconds."""

    def may_see(self, connection: Any) -> bool:
        """Whether this user is shown all open transactions."""
        return True

    @abc.abstractmethod
    def clock(self, connection: Any) -> dt.datetime:
        """Return the database's time."""

    @abc.abstractmethod
    def open_since(self, connection: Any) -> dt.datetime | None:
        """Return when the oldest open transaction began, None if none is open."""

    @abc.abstractmethod
    def writers(self, connection: Any, table: TableId | None) -> frozenset[str]:
        """Return the open transactions that may have written to a table (None: to any)."""


class PostgreSqlHorizon(Horizon):
    hint = "GRANT pg_read_all_stats TO the user"
    coarse = False

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect

    def may_see(self, connection: Any) -> bool:
        sql = "select pg_catalog.pg_has_role(current_user, 'pg_read_all_stats', 'usage') and not pg_catalog.pg_is_in_recovery()"
        return bool(_one(connection, sql))

    def clock(self, connection: Any) -> dt.datetime:
        return _moment(_one(connection, "select clock_timestamp()"))

    def open_since(self, connection: Any) -> dt.datetime | None:
        found = _one(
            connection,
            "select min(xact_start) from pg_catalog.pg_stat_activity where datname = current_database() "
            "and pid <> pg_backend_pid() and application_name <> %s "
            "and backend_type not in ('autovacuum worker', 'parallel worker', 'walsender')",
            APPLICATION,
        )
        prepared = _one(connection, "select min(prepared) from pg_catalog.pg_prepared_xacts where database = current_database()")
        moments = [_moment(each) for each in (found, prepared) if each is not None]
        return min(moments, default=None)

    def writers(self, connection: Any, table: TableId | None) -> frozenset[str]:
        sql = (
            "select distinct virtualtransaction from pg_catalog.pg_locks where locktype = 'relation' and granted "
            "and mode in ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock') "
            "and database = (select oid from pg_catalog.pg_database where datname = current_database())"
        )
        if table is None:
            return frozenset(row[0] for row in _all(connection, sql))
        name = self._dialect.qualified(TableId(None, table.schema, table.table))
        return frozenset(row[0] for row in _all(connection, sql + " and relation = pg_catalog.to_regclass(%s)", name))


class MySqlHorizon(Horizon):
    """``open_connection`` opens another connection: only one that is new proves that InnoDB's list is."""

    hint = "GRANT PROCESS ON *.* TO the user"

    def __init__(self, open_connection: Any) -> None:
        self._open = open_connection

    def may_see(self, connection: Any) -> bool:
        try:
            _one(connection, "select count(*) from information_schema.innodb_trx")
        except Exception as error:
            if getattr(error, "args", (None,))[0] == 1227:
                return False
            raise
        return True

    def clock(self, connection: Any) -> dt.datetime:
        return _moment(_one(connection, "select utc_timestamp(6)"))

    def open_since(self, connection: Any) -> dt.datetime | None:
        started = [row[1] for row in self._transactions()]
        return _moment(min(started)) if started else None

    def writers(self, connection: Any, table: TableId | None) -> frozenset[str]:
        return frozenset(f"{row[0]}" for row in self._transactions() if row[2])

    def _transactions(self) -> list[tuple[Any, ...]]:
        """Return id, start and whether something was locked, of each open transaction but those that only read."""
        connection = self._open()
        try:
            with connection.cursor() as cursor:
                cursor.execute("start transaction with consistent snapshot")
                for _ in range(_CACHE_TRIES):
                    cursor.execute(  # starts are shown in the zone of the server's machine, whatever the session's is
                        "select trx_id, convert_tz(trx_started, 'SYSTEM', '+00:00'), "
                        "trx_lock_structs > 0 or trx_rows_modified > 0, "
                        "trx_mysql_thread_id = connection_id(), trx_is_read_only from information_schema.innodb_trx"
                    )
                    rows = cursor.fetchall()
                    if any(row[3] for row in rows):  # our own transaction is in the list: it is newer than our question
                        return [tuple(row[:3]) for row in rows if not row[3] and not row[4]]
                    time.sleep(_CACHE_SECONDS)
        finally:
            connection.close()
        raise ConnectError(
            "InnoDB's list of transactions is not renewed, for something else reads it all the time. "
            "Set sluiceway.horizon=none, and timestamp.delay.interval.ms to how long transactions take."
        )


class SqliteHorizon(Horizon):
    def clock(self, connection: Any) -> dt.datetime:
        return dt.datetime.fromisoformat(str(_one(connection, "select strftime('%Y-%m-%d %H:%M:%f', 'now')"))).replace(tzinfo=UTC)

    def open_since(self, connection: Any) -> dt.datetime | None:
        return None

    def writers(self, connection: Any, table: TableId | None) -> frozenset[str]:
        return frozenset()


class NoHorizon(Horizon):
    """Does not look: what ``sluiceway.horizon=none`` asks for."""

    def __init__(self, other: Horizon) -> None:
        self.clock = other.clock  # type: ignore[method-assign]
        self.coarse = other.coarse

    def clock(self, connection: Any) -> dt.datetime:
        raise NotImplementedError

    def open_since(self, connection: Any) -> dt.datetime | None:
        return None

    def writers(self, connection: Any, table: TableId | None) -> frozenset[str]:
        return frozenset()


def horizon_of(dialect: Dialect, open_connection: Any) -> Horizon:
    """Return who to ask about a database."""
    if dialect.name == POSTGRESQL:
        return PostgreSqlHorizon(dialect)
    return MySqlHorizon(open_connection) if dialect.name == MYSQL else SqliteHorizon()


class SafeNumbers:
    """The highest number of a table below which no row can appear any more. Pure but for what it is told."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, frozenset[str]]] = []
        self._safe: int | None = None

    def add(self, highest: int, writers: frozenset[str]) -> int | None:
        """Take the highest number and the writers that were open right after it was looked up; return the highest safe one."""
        waiting = [(number, left) for number, since in self._waiting if (left := since & writers)]
        done = [number for number, since in self._waiting if not since & writers]
        if not writers:
            done, waiting = [*done, highest], []
        elif len(waiting) < 16:
            waiting.append((highest, writers))
        self._waiting = waiting
        if done:
            self._safe = safe = max(done if self._safe is None else [*done, self._safe])
            self._waiting = [each for each in waiting if each[0] > safe]
        return self._safe

    @property
    def oldest(self) -> int | None:
        """The number that has waited longest, None if none waits."""
        return self._waiting[0][0] if self._waiting else None


def safe_time(now: dt.datetime, open_since: dt.datetime | None, *, fraction: int, coarse: bool, delay: float) -> dt.datetime:
    """Return the moment before which all rows are there. ``fraction`` is how many digits of a second the column keeps: a time
    that was rounded down is earlier than its transaction; ``coarse`` databases give starts in whole seconds. Pure.
    """
    margin = dt.timedelta(seconds=1 if coarse else 0 if fraction >= 6 else 10.0**-fraction)
    horizon = now if open_since is None else min(now, open_since)
    return min(horizon - margin, now - dt.timedelta(seconds=delay))


def _one(connection: Any, sql: str, *parameters: Any) -> Any:
    rows = _all(connection, sql, *parameters)
    return rows[0][0] if rows else None


def _all(connection: Any, sql: str, *parameters: Any) -> list[Any]:
    cursor = connection.cursor()
    try:
        cursor.execute(sql, parameters) if parameters else cursor.execute(sql)
        return list(cursor.fetchall())
    finally:
        cursor.close()


def _moment(value: Any) -> dt.datetime:
    found: dt.datetime = value if isinstance(value, dt.datetime) else dt.datetime.fromisoformat(str(value))
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def chosen_horizon(config: SourceConfig, database: Database, raw: Any) -> Horizon:
    """Return who to ask how far may be read. Raises ConnectError where that is required and not allowed."""
    horizon = horizon_of(database.dialect, lambda: _connection_of_its_own(database))
    if config.mode == BULK or config.horizon == NONE:
        return NoHorizon(horizon)
    if horizon.may_see(raw):
        return horizon
    message = (
        f"The user {database.url.user} may not see all open transactions of {database.url.place}, so rows that are "
        f"committed late could be overlooked. {horizon.hint}, or set timestamp.delay.interval.ms to how long transactions take"
    )
    if config.horizon == AUTO:
        log.warning("%s.", message)
        return NoHorizon(horizon)
    raise ConnectError(f"{message}, with sluiceway.horizon=none.")


def _connection_of_its_own(database: Database) -> Any:
    """Return a connection of the driver's, for the caller to close."""
    connection = database.connect()
    fairy = connection.connection
    raw = fairy.driver_connection
    fairy.detach()
    return raw
