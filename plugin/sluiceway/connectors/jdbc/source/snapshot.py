"""Plans a table's first snapshot in key ranges, which several tasks read in parallel.

The connector makes the plan. Every offset of the table carries it, also after the snapshot, so that a later task continues
the plan that was begun instead of a new one. Rows after the snapshot are read as usual, by one task, from where the plan ends.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sluiceway.connectors.jdbc.columns import WHOLE_NUMBERS, Column
from sluiceway.connectors.jdbc.dialects.horizon import Horizon
from sluiceway.connectors.jdbc.dialects.sql import TableId
from sluiceway.connectors.jdbc.source.columns import find_column, incrementing_column
from sluiceway.connectors.jdbc.source.config import SourceConfig
from sluiceway.connectors.jdbc.source.horizon import SafeNumbers, horizon_for, safe_time
from sluiceway.connectors.jdbc.source.keys import INCREMENTING
from sluiceway.connectors.jdbc.source.offsets import Position
from sluiceway.connectors.jdbc.source.shape import Snapshot
from sluiceway.connectors.jdbc.source.sql import Bounds, KeyRange, SelectBuilder
from sluiceway.connectors.jdbc.source.table_reader import run
from sluiceway.connectors.jdbc.tables import columns_of
from sluiceway.errors import ConnectError

if TYPE_CHECKING:
    import sqlalchemy as sa

    from sluiceway.connectors.jdbc.connection import Database

_WAIT_SECONDS = 60.0
_RETRY_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Plan:
    """The ranges of a snapshot: ``ends`` of all but the last, whose end is ``highest`` (None: unbounded).

    ``until`` is the timestamp up to which rows belong to the snapshot, None without a timestamp column.
    """

    column: str
    ends: tuple[int, ...]
    highest: int | None
    until: dt.datetime | None = None

    @property
    def count(self) -> int:
        """The number of ranges."""
        return len(self.ends) + 1

    @property
    def text(self) -> str:
        """The plan as it is stored in offsets."""
        until = None if self.until is None else self.until.isoformat()
        return json.dumps([self.column, list(self.ends), self.highest, until], separators=(",", ":"))

    @classmethod
    def parse(cls, text: str) -> Plan:
        """Return the plan of a stored text. Raises ConnectError if it is not one."""
        try:
            column, ends, highest, until = json.loads(text)
            return cls(column, tuple(map(int, ends)), highest, None if until is None else dt.datetime.fromisoformat(until))
        except (ValueError, TypeError) as error:
            raise ConnectError(f"The stored plan of a snapshot cannot be read: {text}. Reset the connector's offsets.") from error

    def snapshot(self, number: int) -> Snapshot:
        """Return a range by its number, from 0."""
        lows, highs = [None, *self.ends], [*self.ends, self.highest]
        return Snapshot(KeyRange(self.column, lows[number], highs[number]), Bounds(None, self.until), self.text)

    @property
    def follows(self) -> Position:
        """The position at which reading continues after the snapshot, which excludes rows of the timestamp ``until``."""
        return Position(timestamp=self.until - dt.timedelta(microseconds=1)) if self.until is not None else Position(self.highest)


def plan_of(column: str, low: int | None, high: int | None, count: int, until: dt.datetime | None) -> Plan:
    """Return a plan of ``count`` ranges of equal width; those of an empty table are empty."""
    if low is None or high is None:
        low = high = 0
    width = (high - low + 1) / count
    return Plan(column, tuple(low + int(width * number) - 1 for number in range(1, count)), high, until)


def plan_for(config: SourceConfig, database: Database, connection: sa.Connection, table: TableId) -> Plan:
    """Return the plan of a table's snapshot. Waits up to a minute for transactions that write to it. Runs on the driver.

    Raises ConnectError if no column can divide the table, or if a transaction does not end.
    """
    columns = columns_of(connection, database.dialect, table)
    column = _range_column(config, columns, f"table {table}")
    raw: Any = connection.connection.driver_connection
    horizon = horizon_for(config, database, raw)
    select = SelectBuilder(database.dialect, columns, table=table)
    if config.mode == INCREMENTING:
        low, high = _safe_range(horizon, raw, table, select, column)
        return plan_of(column, low, high, config.ranges, None)
    until = None
    if config.uses_timestamp:
        by_name = {each.name: each for each in columns}
        names = [find_column(list(by_name), name, f"table {table}") for name in config.timestamp_columns]
        fraction = min(by_name[name].type.fraction for name in names)
        now, since = horizon.clock(raw), horizon.open_since(raw)
        until = safe_time(now, since, fraction=fraction, coarse=horizon.coarse, delay=config.timestamp_delay)
    [(low, high)] = run(raw, select.highest(column))
    raw.rollback()
    # The timestamp bounds the snapshot, or nothing does: so the last range has no end.
    return dataclasses.replace(plan_of(column, low, high, config.ranges, until), highest=None)


def _range_column(config: SourceConfig, columns: Sequence[Column], name: str) -> str:
    names = [column.name for column in columns]
    keys = [column.name for column in columns if column.primary_key]
    if config.mode == INCREMENTING:
        column = incrementing_column(config, columns, name)
    elif config.range_column:
        column = find_column(names, config.range_column, name)
    elif len(keys) == 1:
        column = keys[0]
    else:
        raise ConnectError(
            f"{name} has no primary key of one column for ranges. Name a column with sluiceway.snapshot.column, or set "
            "sluiceway.snapshot.ranges=1."
        )
    chosen = columns[names.index(column)]
    if chosen.type.kind not in WHOLE_NUMBERS or chosen.nullable:
        problem = "is nullable" if chosen.nullable else "does not hold integers"
        raise ConnectError(
            f"Column {column} of {name} {problem}, so it cannot be divided into ranges. Name another with "
            "sluiceway.snapshot.column."
        )
    return column


def _safe_range(horizon: Horizon, raw: Any, table: TableId, select: SelectBuilder, column: str) -> tuple[int | None, int | None]:
    """Return the lowest number and the highest safe number, once there is one; None for an empty table."""
    safe, deadline = SafeNumbers(), time.monotonic() + _WAIT_SECONDS
    while True:
        [(low, high)] = run(raw, select.highest(column))
        raw.rollback()
        if high is None:
            return None, None
        found = safe.add(int(high), horizon.writers(raw, table))
        raw.rollback()
        if found is not None:
            return low, found
        if time.monotonic() > deadline:
            raise ConnectError(
                f"A transaction has been writing to {table} for more than {_WAIT_SECONDS:g} s, so the end of its snapshot is not "
                "known. End the transaction, or set sluiceway.horizon=none."
            )
        time.sleep(_RETRY_SECONDS)
