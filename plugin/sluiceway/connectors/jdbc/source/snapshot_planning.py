"""Looks at a table and plans its first snapshot in ranges. Driver."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

from sluiceway.connectors.jdbc.columns import WHOLE_NUMBERS
from sluiceway.connectors.jdbc.dialects.base import TableId
from sluiceway.connectors.jdbc.source.columns import found_column, incrementing_column
from sluiceway.connectors.jdbc.source.config import INCREMENTING, SourceConfig
from sluiceway.connectors.jdbc.source.horizon import SafeNumbers, chosen_horizon, safe_time
from sluiceway.connectors.jdbc.source.key_ranges import Plan, plan_of
from sluiceway.connectors.jdbc.source.sql import SelectBuilder
from sluiceway.connectors.jdbc.source.table_reader import run
from sluiceway.connectors.jdbc.tables import columns_of
from sluiceway.errors import ConnectError

if TYPE_CHECKING:
    import sqlalchemy as sa

    from sluiceway.connectors.jdbc.connection import Database

log = logging.getLogger(__name__)

_WAIT_SECONDS = 60.0


def plan_for(config: SourceConfig, database: Database, connection: sa.Connection, table: TableId) -> Plan:
    """Return how a table's first reading is cut. Waits up to a minute for transactions that write to it.

    Raises ConnectError where there is no column to cut by, or a transaction does not end.
    """
    place = f"table {table}"
    columns = columns_of(connection, database.dialect, table)
    names = [column.name for column in columns]
    keys = [column.name for column in columns if column.primary_key]
    if config.mode == INCREMENTING:
        column = incrementing_column(config, columns, place)
    elif config.range_column:
        column = found_column(names, config.range_column, place)
    elif len(keys) == 1:
        column = keys[0]
    else:
        raise ConnectError(
            f"{place} has no primary key of one column to cut ranges by; name a column with sluiceway.snapshot.column."
        )
    chosen = columns[names.index(column)]
    if chosen.type.kind not in WHOLE_NUMBERS or chosen.nullable:
        what = "may be null" if chosen.nullable else "holds no whole numbers"
        raise ConnectError(f"Column {column} of {place} {what}, so ranges cannot be cut by it; see sluiceway.snapshot.column.")
    raw: Any = connection.connection.driver_connection
    horizon = chosen_horizon(config, database, raw)
    select = SelectBuilder(database.dialect, columns, table=table)
    safe, deadline = SafeNumbers(), time.monotonic() + _WAIT_SECONDS
    until = None
    if config.uses_timestamp:
        fraction = min(columns[names.index(found_column(names, name, place))].type.fraction for name in config.timestamp_columns)
        until = safe_time(
            horizon.clock(raw), horizon.open_since(raw), fraction=fraction, coarse=horizon.coarse, delay=config.timestamp_delay
        )
    while True:
        [(low, high)] = run(raw, select.highest(column))
        raw.rollback()
        if config.mode != INCREMENTING or high is None:  # times bound the others, or nothing does
            return plan_of(column, low, high, config.ranges, until).open_ended(config.mode != INCREMENTING)
        found = safe.add(int(high), horizon.writers(raw, table))
        raw.rollback()
        if found is not None:
            return plan_of(column, low, found, config.ranges, until)
        if time.monotonic() > deadline:
            raise ConnectError(
                f"A transaction has been writing to {table} for more than {_WAIT_SECONDS:g} s, so where its snapshot ends is not "
                "known. Let it end, or set sluiceway.horizon=none."
            )
        time.sleep(0.2)
