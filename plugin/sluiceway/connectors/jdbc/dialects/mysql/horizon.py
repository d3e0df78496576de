"""The safe horizon of MySQL and MariaDB: ``information_schema.innodb_trx``, which needs the PROCESS privilege."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable
from typing import Any

from sluiceway.connectors.jdbc.dialects.errors import error_number
from sluiceway.connectors.jdbc.dialects.horizon import Horizon, query_value, utc_moment
from sluiceway.connectors.jdbc.dialects.sql import TableId
from sluiceway.errors import ConnectError

_CACHE_SECONDS = 0.11  # InnoDB serves its list of transactions from a cache for this long after each query
_CACHE_TRIES = 50
_ACCESS_DENIED = 1227


class MySqlHorizon(Horizon):
    """Queries each time over a new connection: only the entry of its own new transaction proves that the list is current."""

    hint = "GRANT PROCESS ON *.* TO the user"

    def __init__(self, open_connection: Callable[[], Any]) -> None:
        self._open_connection = open_connection

    def may_see(self, connection: Any) -> bool:
        try:
            query_value(connection, "select count(*) from information_schema.innodb_trx")
        except Exception as error:
            if error_number(error) == _ACCESS_DENIED:
                return False
            raise
        return True

    def clock(self, connection: Any) -> dt.datetime:
        return utc_moment(query_value(connection, "select utc_timestamp(6)"))

    def open_since(self, connection: Any) -> dt.datetime | None:
        started = [row[1] for row in self._transactions()]
        return utc_moment(min(started)) if started else None

    def writers(self, connection: Any, table: TableId | None) -> frozenset[str]:
        return frozenset(f"{row[0]}" for row in self._transactions() if row[2])

    def _transactions(self) -> list[tuple[Any, ...]]:
        """Return id, start and whether it holds locks, of each open transaction that is not read-only."""
        connection = self._open_connection()
        try:
            with connection.cursor() as cursor:
                cursor.execute("start transaction with consistent snapshot")
                for _ in range(_CACHE_TRIES):
                    cursor.execute(  # starts are in the zone of the server's machine, whatever the session's zone is
                        "select trx_id, convert_tz(trx_started, 'SYSTEM', '+00:00'), "
                        "trx_lock_structs > 0 or trx_rows_modified > 0, "
                        "trx_mysql_thread_id = connection_id(), trx_is_read_only from information_schema.innodb_trx"
                    )
                    rows = cursor.fetchall()
                    if any(row[3] for row in rows):  # the list has this transaction, so it is newer than the call
                        return [tuple(row[:3]) for row in rows if not row[3] and not row[4]]
                    time.sleep(_CACHE_SECONDS)
        finally:
            connection.close()
        raise ConnectError(
            "InnoDB does not refresh its list of transactions, because another client queries it all the time. "
            "Set sluiceway.horizon=none, and timestamp.delay.interval.ms to how long transactions take."
        )
