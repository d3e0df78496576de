"""Tracks the position in the log: the source offset, and the source blocks of records. No I/O.

The offset names the start of the current transaction, and how many of its events (the GTID event is the first) and rows have been
read, so that a restart can skip them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sluiceway.connectors.cdc.envelope import source_schema
from sluiceway.connectors.cdc.mysql.binlog.gtids import MariaDbGtidSet, MySqlGtidSet
from sluiceway.connectors.cdc.mysql.binlog.stream import StartPosition
from sluiceway.data import Schema, Struct
from sluiceway.data.schema import (
    INT32_SCHEMA,
    INT64_SCHEMA,
    OPTIONAL_INT64_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
)

VERSION = "3.5.0.Final"
"""The version of Debezium's connectors whose records are written."""

SNAPSHOT_KEY = "snapshot"
INITIAL = "INITIAL"

GtidSet = MariaDbGtidSet | MySqlGtidSet


def block_schema(connector: str) -> Schema:
    """Return the schema of source blocks; ``connector`` is mariadb or mysql."""
    fields = [
        ("table", OPTIONAL_STRING_SCHEMA),
        ("server_id", INT64_SCHEMA),
        ("gtid", OPTIONAL_STRING_SCHEMA),
        ("file", STRING_SCHEMA),
        ("pos", INT64_SCHEMA),
        ("row", INT32_SCHEMA),
        ("thread", OPTIONAL_INT64_SCHEMA),
        ("query", OPTIONAL_STRING_SCHEMA),
    ]
    return source_schema(f"io.debezium.connector.{connector}.Source", fields)


class LogPosition:
    """The position of the event that is being read. One thread uses it.

    Args:
        connector: mariadb or mysql.
        prefix: the topic prefix.
    """

    def __init__(self, connector: str, prefix: str) -> None:
        self.schema = block_schema(connector)
        self._connector = connector
        self._prefix = prefix
        self._gtids: GtidSet = MariaDbGtidSet() if connector == "mariadb" else MySqlGtidSet()
        self._has_gtids = False
        self.file = ""
        self.position = 0
        self.end = 0
        """The position in the file behind the last event, even one that has no records."""
        self.next = 0
        """The position in the file behind the event that is being read."""
        self.located = False
        """Whether ``file`` is one of this server: after a start by GTIDs, which may be on another one, not before an event."""
        self.server_id = 0
        self.seconds = 0
        self.gtid: str | None = None
        self.thread: int | None = None
        self.query: str | None = None
        self._start_file = ""
        self._start_position = 0
        self._start_gtids: str | None = None
        self._events = 0
        self._rows = 0
        self._snapshot: str | None = None
        self.last_row = 0
        """The number of the last row in its event, which the records of statements behind it have too."""
        self.in_transaction = False
        self.extra: Callable[[], dict[str, Any]] = dict
        """Returns further keys of the offset."""

    def add_extra(self, more: Callable[[], dict[str, Any]]) -> None:
        """Add further keys of the offset."""
        before = self.extra
        self.extra = lambda: {**before(), **more()}

    # -- moves

    def load(self, offset: Mapping[str, Any]) -> None:
        """Continue at a stored offset."""
        self.start_at(StartPosition(str(offset.get("file") or ""), int(offset.get("pos") or 0), offset.get("gtids")))
        self.resume_at(int(offset.get("event") or 0), int(offset.get("row") or 0))
        self.server_id = int(offset.get("server_id") or 0)
        self.seconds = int(offset.get("ts_sec") or 0)

    def start_at(self, start: StartPosition) -> None:
        """Move to a position between transactions."""
        self.file = self._start_file = start.file
        self.position = self.end = self._start_position = start.position
        self.located = not start.gtids
        self._has_gtids = bool(start.gtids)
        self._start_gtids = start.gtids or None
        kind = type(self._gtids)
        self._gtids = kind.parse(start.gtids or "")
        self._events = self._rows = 0
        self.in_transaction = False

    def resume_at(self, events: int, rows: int) -> None:
        """Set how many events of the next transaction, and rows of the event after them, have been read."""
        self._events, self._rows = events, rows

    def rewind(self) -> StartPosition:
        """Go back to the start of the current transaction, where a new dump begins, and return it; what was read is skipped."""
        events, rows = self.skips
        self.start_at(self.start)
        self.resume_at(events, rows)
        return self.start

    @property
    def start(self) -> StartPosition:
        """The position from which to read again."""
        return StartPosition(self._start_file, self._start_position, self._start_gtids)

    @property
    def skips(self) -> tuple[int, int]:
        """The numbers of events of the current transaction, and of rows of the event after them, that have been read."""
        return self._events, self._rows

    def rotate(self, file: str, position: int) -> None:
        self.file, self.end = file, position
        self.last_row = 0
        self.located = True
        if not self.in_transaction:
            self._start_file, self._start_position = file, position

    def begin(self, gtid: str | None, position: int) -> None:
        """Start a transaction, or a statement with a GTID of its own, with the event at this position."""
        self.gtid = gtid
        self._start_file, self._start_position = self.file, position
        if gtid is not None:
            self._start_gtids = str(self._gtids) if self._has_gtids else None
            self._gtids.add(gtid)
            self._has_gtids = True
        self._events = self._rows = 0
        self.in_transaction = True

    def complete_event(self) -> None:
        """Count an event of the transaction as read."""
        if self.in_transaction:
            self._events += 1
            self._rows = 0

    def row(self, number: int, count: int) -> None:
        """Count a row of the current event as read; ``number`` starts at 0."""
        self._rows = min(number + 1, count)

    def commit(self, next_position: int) -> None:
        """End the transaction; the next one starts at this position."""
        self._start_file, self._start_position = self.file, next_position
        self._start_gtids = str(self._gtids) if self._has_gtids else None
        self._events = self._rows = 0
        self.in_transaction = False
        self.query = None

    def snapshot(self, kind: str | None) -> None:
        """Mark the offsets as those of a running snapshot, or of a complete one (None)."""
        self._snapshot = kind

    @property
    def gtids(self) -> str:
        return str(self._gtids)

    # -- results

    def offset(self) -> dict[str, Any]:
        """Return the source offset."""
        offset: dict[str, Any] = {"ts_sec": self.seconds, "file": self._start_file, "pos": self._start_position}
        if self._snapshot is not None:
            offset[SNAPSHOT_KEY] = self._snapshot
        if self._start_gtids is not None:
            offset["gtids"] = self._start_gtids
        if self._rows:
            offset["row"] = self._rows
        if self.server_id:
            offset["server_id"] = self.server_id
        if self._events:
            offset["event"] = self._events
        return {**offset, **self.extra()}

    def block(
        self, database: str, table: str | None, *, snapshot: str | None = None, row: int = 0, nanos: int | None = None
    ) -> Struct:
        """Return the source block of a record; ``nanos`` is its time, by default that of the event."""
        if nanos is None:
            nanos = self.seconds * 1_000_000_000
        values = [
            VERSION,
            self._connector,
            self._prefix,
            nanos // 1_000_000,
            snapshot,
            database,
            None,
            nanos // 1000,
            nanos,
            table,
            self.server_id,
            self.gtid,
            self.file,
            self.position,
            row,
            self.thread,
            self.query,
        ]
        return Struct.of(self.schema, values)


class BlockingPosition(LogPosition):
    """The position of a blocking snapshot: its records have the offset of the log, and its last transaction in source blocks."""

    def __init__(self, connector: str, prefix: str, start: StartPosition, log: LogPosition) -> None:
        super().__init__(connector, prefix)
        self.schema = log.schema
        self.start_at(start)
        self.gtid, self.server_id = log.gtid, log.server_id
        self._log = log

    def offset(self) -> dict[str, Any]:
        return self._log.offset()
