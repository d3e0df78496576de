"""Rows of a statement as they come from the database, without ever holding more than one fetch of them. Executor.

PostgreSQL: a server-side cursor with binary rows, which psycopg's C code reads; the database makes the next rows while the
last ones are worked on. MySQL and MariaDB: an unbuffered cursor. SQLite reads as it goes.
"""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from sluiceway.connectors.jdbc.source.sql import Statement
from sluiceway.connectors.jdbc.source.values import UTC
from sluiceway.connectors.jdbc.url import MYSQL, POSTGRESQL
from sluiceway.errors import DataError

_CURSOR = "sluiceway"


class Rows(Protocol):
    """A statement's rows."""

    def fetchmany(self, size: int) -> Sequence[tuple[Any, ...]]: ...


def use_own_types(database: str, connection: Any, zone: dt.tzinfo) -> None:
    """Set up a new connection of the driver for reading; ``zone`` is that of times without one."""
    if database == MYSQL:
        connection.decoders = _mysql_decoders()
    elif database == POSTGRESQL:
        connection.read_only = True
        if zone is UTC:
            from psycopg.types.datetime import TimestamptzBinaryLoader

            # Both types have the same bytes, and the session speaks UTC: so the driver's C code makes moments of either.
            connection.adapters.register_loader("timestamp", TimestamptzBinaryLoader)


@contextlib.contextmanager
def rows_of(database: str, connection: Any, statement: Statement) -> Iterator[Rows]:
    """Run a statement on a connection of the driver, whose transaction is to be ended afterwards. Where it is left early on
    MySQL, the connection is not to be used again: the rest of the rows is still on its way there.
    """
    if database == POSTGRESQL:
        connection.execute(f"declare {_CURSOR} no scroll cursor for {statement.sql}", statement.parameters)
        with connection.pipeline():
            yield _FetchedAhead(connection)
        return
    cursor = _cursor(database, connection)
    try:
        cursor.execute(statement.sql, statement.parameters)
        yield cursor
    except BaseException:  # a generator that is closed early among them
        _abandon(database, connection, cursor)
        raise
    else:
        cursor.close()


class _FetchedAhead:
    """The rows of a server-side cursor. In a pipeline, psycopg does not wait for what is executed until it is asked for."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._next: Any = None

    def fetchmany(self, size: int) -> Sequence[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = (self._next or self._fetch(size)).fetchall()
        self._next = self._fetch(size) if len(rows) == size else None
        return rows

    def _fetch(self, size: int) -> Any:
        cursor = self._connection.cursor(binary=True)
        return cursor.execute(f"fetch forward {size} from {_CURSOR}", prepare=False)


def _cursor(database: str, connection: Any) -> Any:
    if database == MYSQL:
        from pymysql.cursors import SSCursor

        return connection.cursor(SSCursor)
    return connection.cursor()


def _abandon(database: str, connection: Any, cursor: Any) -> None:
    if database == MYSQL:
        cursor.connection = None  # or it, and its result, would read all rows that are left
        with contextlib.suppress(Exception):
            cursor._result.unbuffered_active = False  # there is no other way to say that
            connection._force_close()
        return
    with contextlib.suppress(Exception):  # it may be what failed
        cursor.close()


def _mysql_decoders() -> dict[int, Any]:
    from pymysql.constants import FIELD_TYPE
    from pymysql.converters import decoders

    return {
        **decoders,
        FIELD_TYPE.DATETIME: _datetime,
        FIELD_TYPE.TIMESTAMP: _datetime,
        FIELD_TYPE.TIME: _time,
        FIELD_TYPE.DATE: _date,
        FIELD_TYPE.NEWDATE: _date,
    }


def _datetime(text: str) -> dt.datetime | None:
    try:
        return dt.datetime.fromisoformat(text if len(text) in (19, 26) else text.ljust(26, "0"))
    except ValueError:
        return None  # a zero date, MySQL's word for none


def _date(text: str) -> dt.date | None:
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        return None


def _time(text: str) -> dt.time:
    try:
        return dt.time.fromisoformat(text if len(text) in (8, 15) else text.ljust(15, "0"))
    except ValueError as error:
        raise DataError(f"{text} in a time column is no time of a day; cast it to char in a query.") from error
