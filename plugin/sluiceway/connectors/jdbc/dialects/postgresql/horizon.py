"""The safe horizon of PostgreSQL.

Timestamps: ``pg_stat_activity.xact_start``, which shows other users' sessions to members of ``pg_read_all_stats``
(``pg_monitor``), and ``pg_prepared_xacts``. Numbers: ``pg_locks``, which every user may read.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

from sluiceway.connectors.jdbc.dialects.horizon import APPLICATION, Horizon, query_rows, query_value, utc_moment
from sluiceway.connectors.jdbc.dialects.sql import SqlBuilder, TableId

_MAY_SEE = "select pg_catalog.pg_has_role(current_user, 'pg_read_all_stats', 'usage') and not pg_catalog.pg_is_in_recovery()"
_OPEN_SINCE = (
    "select min(xact_start) from pg_catalog.pg_stat_activity where datname = current_database() "
    "and pid <> pg_backend_pid() and application_name <> %s "
    "and backend_type not in ('autovacuum worker', 'parallel worker', 'walsender')"
)
_PREPARED_SINCE = "select min(prepared) from pg_catalog.pg_prepared_xacts where database = current_database()"
_WRITERS = (
    "select distinct virtualtransaction from pg_catalog.pg_locks where locktype = 'relation' and granted "
    "and mode in ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock') "
    "and database = (select oid from pg_catalog.pg_database where datname = current_database())"
)


class PostgreSqlHorizon(Horizon):
    hint = "GRANT pg_read_all_stats TO the user"
    coarse = False

    def __init__(self, sql: SqlBuilder) -> None:
        self._sql = sql

    def may_see(self, connection: Any) -> bool:
        return bool(query_value(connection, _MAY_SEE))

    def clock(self, connection: Any) -> dt.datetime:
        return utc_moment(query_value(connection, "select clock_timestamp()"))

    def open_since(self, connection: Any) -> dt.datetime | None:
        starts = query_value(connection, _OPEN_SINCE, APPLICATION), query_value(connection, _PREPARED_SINCE)
        return min((utc_moment(each) for each in starts if each is not None), default=None)

    def writers(self, connection: Any, table: TableId | None) -> frozenset[str]:
        if table is None:
            return frozenset(row[0] for row in query_rows(connection, _WRITERS))
        name = self._sql.qualified(TableId(None, table.schema, table.table))
        sql = _WRITERS + " and relation = pg_catalog.to_regclass(%s)"
        return frozenset(row[0] for row in query_rows(connection, sql, name))
