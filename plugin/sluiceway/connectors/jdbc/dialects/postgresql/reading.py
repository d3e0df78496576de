"""Reads rows from PostgreSQL: a server-side cursor with binary rows, fetched one batch ahead.

psycopg's C code reads binary rows, and the server prepares the next batch while the source works on the current one. Runs
on the executors.
"""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Iterator, Sequence
from typing import Any

from sluiceway.connectors.jdbc.dialects.base import Rows
from sluiceway.connectors.jdbc.dialects.sql import Statement
from sluiceway.connectors.jdbc.dialects.values import UTC

_CURSOR = "sluiceway"


def prepare(connection: Any, zone: dt.tzinfo) -> None:
    """Make a new connection read-only; read timestamps without a zone as UTC if ``zone`` is UTC."""
    connection.read_only = True
    if zone is UTC:
        from psycopg.types.datetime import TimestamptzBinaryLoader

        # Both types have the same binary form, and the session is in UTC, so C code makes aware datetimes of either.
        connection.adapters.register_loader("timestamp", TimestamptzBinaryLoader)


@contextlib.contextmanager
def rows(connection: Any, statement: Statement) -> Iterator[Rows]:
    """Execute a statement and give its rows."""
    connection.execute(f"declare {_CURSOR} no scroll cursor for {statement.sql}", statement.parameters)
    with connection.pipeline():
        yield _FetchedAhead(connection)


class _FetchedAhead:
    """The rows of the server-side cursor. In pipeline mode, psycopg does not wait for a FETCH until its rows are asked for."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._next: Any = None

    def fetchmany(self, size: int) -> Sequence[tuple[Any, ...]]:
        batch: list[tuple[Any, ...]] = (self._next or self._fetch(size)).fetchall()
        self._next = self._fetch(size) if len(batch) == size else None
        return batch

    def _fetch(self, size: int) -> Any:
        cursor = self._connection.cursor(binary=True)
        return cursor.execute(f"fetch forward {size} from {_CURSOR}", prepare=False)
