"""Defines source partitions and offsets in the form of Confluent's JDBC source, so that either connector continues the other.

A table's partition is ``{"protocol": "1", "table": "catalog.schema.table"}``, a query's ``{"query": "query"}``; the form of
older connectors, ``{"table": "table"}``, is still read. Ranges of a first snapshot have partitions of their own, with the
additional field ``range``. No I/O.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

from sluiceway.api import Offset, Partition
from sluiceway.connectors.jdbc.dialects.sql import TableId
from sluiceway.data.instant import EPOCH, millis_of
from sluiceway.errors import ConnectError, DataError

INCREMENTING_FIELD = "incrementing"
TIMESTAMP_FIELD = "timestamp"
NANOS_FIELD = "timestamp_nanos"
RANGE_FIELD = "range"
PLAN_FIELD = "plan"

QUERY_PARTITION: Partition = {"query": "query"}

_FORM = '{"protocol": "1", "table": "catalog.schema.table"} or {"query": "query"}'


def table_partition(table: TableId) -> dict[str, str]:
    """Return the partition of a table."""
    return {"protocol": "1", "table": str(table)}


def old_table_partition(table: TableId) -> dict[str, str]:
    """Return the partition that older connectors wrote for a table."""
    return {"table": table.table}


def range_partition(table: TableId, number: int, count: int) -> dict[str, str]:
    """Return the partition of a range of a table's first snapshot."""
    return {**table_partition(table), RANGE_FIELD: f"{number}/{count}"}


@dataclass(frozen=True, slots=True)
class Position:
    """The number and timestamp of the last row read; ``timestamp`` in UTC to the microsecond, None before the first row."""

    incrementing: int | None = None
    timestamp: dt.datetime | None = None

    @classmethod
    def of(cls, offset: Offset | None) -> Position:
        """Return the position of a stored offset. Raises ConnectError for an invalid offset."""
        if not offset:
            return cls()
        check_offset(QUERY_PARTITION, offset)
        millis, nanos = offset.get(TIMESTAMP_FIELD), offset.get(NANOS_FIELD)
        moment = None
        if millis is not None:
            moment = EPOCH + dt.timedelta(milliseconds=millis)
            if nanos is not None:  # of the second, including the milliseconds
                moment = moment.replace(microsecond=nanos // 1000)
        return cls(offset.get(INCREMENTING_FIELD), moment)

    def offset(self) -> dict[str, int]:
        """Return the offset to store."""
        found = {} if self.incrementing is None else {INCREMENTING_FIELD: self.incrementing}
        return found if self.timestamp is None else {**found, **timestamp_offset(self.timestamp)}


def whole_number(value: Any) -> int:
    """Return a database's number as an int. Raises DataError if an offset cannot hold it."""
    number = int(value)
    if number != value or not -(1 << 63) <= number < 1 << 63:
        raise DataError(f"{value} is not a whole number of 64 bits, which an incrementing column must hold.")
    return number


def timestamp_offset(moment: dt.datetime) -> dict[str, int]:
    """Return the offset's fields for a moment: milliseconds since the epoch, and nanoseconds of the second."""
    return {TIMESTAMP_FIELD: millis_of(moment), NANOS_FIELD: moment.microsecond * 1000}


def check_offset(partition: Partition | None, offset: Offset | None) -> None:
    """Raise ConnectError for an offset that no task can start from; None, which deletes an offset, is valid."""
    if offset is None:
        return
    if not partition or not ("table" in partition or "query" in partition):
        raise ConnectError(f"A JDBC source has no partition {dict(partition or {})}: write {_FORM}.")
    allowed = {INCREMENTING_FIELD, TIMESTAMP_FIELD, NANOS_FIELD, PLAN_FIELD}
    for name, value in offset.items():
        if name not in allowed:
            raise ConnectError(f"An offset of a JDBC source has no field {name!r}, only {', '.join(sorted(allowed))}.")
        if name == PLAN_FIELD:
            if not isinstance(value, str):
                raise ConnectError(f"The field {name!r} of an offset must be a text, not {value!r}.")
        elif value is not None and (type(value) is not int or not -(1 << 63) <= value < 1 << 63):
            raise ConnectError(f"The field {name!r} of an offset must be a whole number of 64 bits, not {value!r}.")
    nanos = offset.get(NANOS_FIELD)
    if nanos is not None and not 0 <= nanos < 1_000_000_000:
        raise ConnectError(f"The field {NANOS_FIELD!r} of an offset is the nanoseconds of a second: 0 to 999999999, not {nanos}.")
