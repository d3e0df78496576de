"""Defines the safe horizon: how far a source may read without missing rows of transactions that commit later.

A row's timestamp or number is taken while its transaction runs, and becomes visible only when the transaction commits. So a
source reads only rows that no open transaction can precede, and asks the database for those transactions:

- timestamps: up to the start of the oldest open transaction, or the current time, by the database's clock;
- numbers: up to the highest number, once every transaction has ended that had written to the table when it was the highest.

Each dialect's horizon names the view it reads and the privilege that the user needs. Runs on the executors and, to plan
snapshots, on the driver.
"""

from __future__ import annotations

import abc
import datetime as dt
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sluiceway.connectors.jdbc.dialects.sql import TableId

APPLICATION = "sluiceway-jdbc-source"
"""The application name of the source's own sessions, which only read, so that horizons can leave them out."""


class Horizon(abc.ABC):
    """Finds the open transactions of one database. Each method takes a driver connection without an open transaction."""

    hint = ""
    """The statement that grants the user the privilege to see other sessions."""
    coarse = True
    """Whether the database reports the start of transactions in whole seconds."""

    def may_see(self, connection: Any) -> bool:
        """Return whether this user can see all open transactions."""
        return True

    @abc.abstractmethod
    def clock(self, connection: Any) -> dt.datetime:
        """Return the database's time in UTC."""

    @abc.abstractmethod
    def open_since(self, connection: Any) -> dt.datetime | None:
        """Return the start of the oldest open transaction in UTC, None if none is open."""

    @abc.abstractmethod
    def writers(self, connection: Any, table: TableId | None) -> frozenset[str]:
        """Return the ids of open transactions that may have written to a table (None: to any table)."""


class NoHorizon(Horizon):
    """Reports no open transactions: for ``sluiceway.horizon=none``, and for users who may not see them."""

    def __init__(self, clock: Horizon) -> None:
        self._clock = clock
        self.coarse = clock.coarse

    def clock(self, connection: Any) -> dt.datetime:
        return self._clock.clock(connection)

    def open_since(self, connection: Any) -> dt.datetime | None:
        return None

    def writers(self, connection: Any, table: TableId | None) -> frozenset[str]:
        return frozenset()


def query_rows(connection: Any, sql: str, *parameters: Any) -> list[Any]:
    """Run a query on a driver connection and return its rows."""
    cursor = connection.cursor()
    try:
        cursor.execute(sql, parameters) if parameters else cursor.execute(sql)
        return list(cursor.fetchall())
    finally:
        cursor.close()


def query_value(connection: Any, sql: str, *parameters: Any) -> Any:
    """Run a query on a driver connection and return the first column of its first row, None without rows."""
    rows = query_rows(connection, sql, *parameters)
    return rows[0][0] if rows else None


def utc_moment(value: Any) -> dt.datetime:
    """Return a driver's timestamp, or an ISO text, in UTC; one without a zone is taken as UTC."""
    found: dt.datetime = value if isinstance(value, dt.datetime) else dt.datetime.fromisoformat(str(value))
    return found.replace(tzinfo=dt.timezone.utc) if found.tzinfo is None else found.astimezone(dt.timezone.utc)
