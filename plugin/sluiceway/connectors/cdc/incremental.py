"""Incremental snapshots: reads tables in chunks of their keys while the log is read (DBLog's watermarks).

The rows of a chunk wait in a window. Changes in the log remove their rows from it; the rest is returned when the window closes.
With a signal table, a window lasts from one inserted row to the next as the log has them. With ``read.only`` it lasts from the
chunk's query until the log has reached the position at which the chunk was read.
"""

from __future__ import annotations

import datetime as dt
import json
import logging
import time
import uuid
from collections import deque
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from sluiceway.connectors.cdc.config import CommonConfig
from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.incremental_offsets import INITIAL_SIGNAL, OWN_SIGNALS, Request, loaded, stored
from sluiceway.connectors.cdc.notifications import INCREMENTAL, Notifications
from sluiceway.connectors.cdc.tables import Row, TableSchema
from sluiceway.errors import DataError

log = logging.getLogger(__name__)

OPEN, CLOSE = "snapshot-window-open", "snapshot-window-close"

Mark = tuple[Any, ...]
"""A position of the log at which a chunk was read."""


class Chunk(NamedTuple):
    """Rows of a table, and the key up to which they are all of its rows; None if there are no more."""

    rows: list[Row]
    end: list[Any] | None

    @classmethod
    def split(cls, rows: Sequence[Row], size: int, end: list[Any] | None = None) -> Chunk:
        """Return the chunk of rows that have the values of a key, so many, behind those of the table's columns."""
        if end is None and rows:
            end = list(rows[-1][-size:])
        return cls([row[:-size] for row in rows], end)


class ReadOnlyChunk(NamedTuple):
    """A chunk, and the position that the log must reach before its rows may be returned."""

    chunk: Chunk
    mark: Mark


class ChunkReader(Protocol):
    """The database's part of incremental snapshots. Rows have the values of a snapshot's query."""

    def schema(self, table: TableId) -> TableSchema | None:
        """Return a table's schema as it is now, or None if there is no such table."""

    def key(self, table: TableId) -> Sequence[str]:
        """Return the names of the primary key's columns."""

    def has_unique_key(self, table: TableId, names: Sequence[str]) -> bool:
        """Tell whether no two rows have the same values in these columns, none of which is null."""

    def kinds(self, request: Request) -> Sequence[str]:
        """Return the Java classes of the values of the request's key."""

    def count(self, request: Request) -> int: ...

    def maximum(self, request: Request) -> list[Any] | None:
        """Return the largest key, or None for an empty table."""

    def chunk(self, request: Request, schema: TableSchema, limit: int) -> Chunk:
        """Return the rows with keys greater than ``after``, up to the maximum, in key order.

        They are at most ``limit`` rows, or more if several rows have the last key.
        """

    def read_only_chunk(self, request: Request, schema: TableSchema, limit: int) -> ReadOnlyChunk | None:
        """Return the rows as ``chunk``, and a mark; None to try again, because the log is ahead of what queries see."""

    def identity(self, schema: TableSchema, row: Row, *, logged: bool) -> Hashable:
        """Return what a row of a query has in common with the same row in the log: its primary key, or all its values."""

    def is_transient(self, error: Exception) -> bool:
        """Tell whether a new connection, or a later try, may heal an error."""

    def reached(self, mark: Mark) -> bool:
        """Tell whether the log has been read up to a mark."""

    def insert_mark(self, identifier: str, kind: str, data: str) -> None:
        """Insert a row into the signal table."""

    def delete_mark(self, identifier: str) -> None: ...


@dataclass(slots=True)
class _Window:
    identifier: str
    schema: TableSchema
    rows: dict[Hashable, list[Row]] = field(default_factory=dict)
    opened: bool = False
    mark: Mark | None = None


class IncrementalSnapshots:
    """The incremental snapshots of one connector, one table after the other. One thread uses it."""

    def __init__(self, config: CommonConfig, reader: ChunkReader, notifications: Notifications) -> None:
        self._config = config
        self._reader = reader
        self._notifications = notifications
        self._requests: deque[Request] = deque()
        self._window: _Window | None = None
        self._closed: _Window | None = None
        self._paused = False
        self._state: dict[str, Any] | None = None
        self.read_only = config.signals.read_only or not config.signals.table
        self.chunks_returned = 0
        """The chunks, also empty ones, whose rows ``closed_window`` has returned."""

    @property
    def running(self) -> bool:
        return bool(self._requests)

    def load(self, offset: Mapping[str, Any]) -> None:
        """Continue the snapshots of a stored offset."""
        self.resume_requests(loaded(offset))

    def resume_requests(self, requests: Iterable[Request]) -> None:
        """Continue with requests, which are read without watermarks in the database if there is no signal table."""
        for each in requests:
            self._set_key(each)
            self._requests.append(each)
        names = ",".join(dict.fromkeys(str(each.table) for each in self._requests))
        for each in self._requests:
            each.tables = names
        self._state = None

    def state(self) -> dict[str, Any]:
        """Return the part of the source offset that describes the snapshots under way."""
        if self._state is None:
            self._state = stored(self._requests)
        return self._state

    def add(self, signal: str, tables: Sequence[TableId], conditions: Mapping[str, str], surrogate: str | None) -> None:
        """Add tables to read, in this order, unless they are waiting already."""
        waiting = {each.table: each.signal for each in self._requests}
        if all(waiting.get(table) == signal for table in tables):
            return  # a signal that is read again
        repeated = [table for table in tables if waiting.get(table, signal) != signal]
        tables = [table for table in tables if table not in waiting]
        names = ",".join(map(str, tables))
        self._notifications.add(signal, "STARTED", INCREMENTAL, data_collections=names)
        self._notifications.add(signal, "DATA_COLLECTIONS_RESOLVED", INCREMENTAL, data_collections=names)
        for table in tables:
            request = Request(table, signal, conditions.get(str(table)), surrogate, tables=names)
            self._set_key(request)
            self._requests.append(request)
        self._state = None
        for table in repeated:
            log.warning("Signal %s: %s waits for the incremental snapshot of signal %s", signal, table, waiting[table])
            self._ended(Request(table, signal, tables=names), "SKIPPED")

    def _set_key(self, request: Request) -> None:
        """Set the columns to read a table by: the primary key also behind a surrogate key that several rows may share."""
        primary = tuple(self._reader.key(request.table))
        surrogate = tuple(name.strip() for name in (request.surrogate or "").split(",") if name.strip())
        request.unique = self._reader.has_unique_key(request.table, surrogate or primary)
        request.key = surrogate or primary
        if surrogate and not request.unique and self._reader.has_unique_key(request.table, primary):
            request.key += tuple(name for name in primary if name not in surrogate)
            request.unique = True
        request.kinds = tuple(self._reader.kinds(request))

    def stop(self, signal: str, tables: Sequence[TableId] | None) -> None:
        """Stop reading these tables, or all, but for the rest of an initial snapshot: its rows would be missing for ever."""
        current = self._requests[0] if self._requests else None
        stopped = [each for each in self._requests if tables is None or each.table in tables]
        kept = [each for each in stopped if each.signal == INITIAL_SIGNAL]
        if kept:
            names = ", ".join(str(each.table) for each in kept)
            log.warning("Signal %s: the rest of the initial snapshot of %s goes on", signal, names)
        self._requests = deque(each for each in self._requests if each not in stopped or each in kept)
        if not self._requests or self._requests[0] is not current:
            self._window = self._closed = None
        self._state = None
        self._notifications.add(signal, "ABORTED", INCREMENTAL)

    def pause(self, signal: str) -> None:
        self._paused = True
        self._notifications.add(signal, "PAUSED", INCREMENTAL)

    def resume(self, signal: str) -> None:
        self._paused = False
        self._notifications.add(signal, "RESUMED", INCREMENTAL)

    def advance(self) -> None:
        """Read the next chunk, unless one is being read or snapshots are paused."""
        while self._requests and self._window is None and not self._paused:
            request = self._requests[0]
            try:
                if not self._begin(request):
                    return
            except Exception as error:  # noqa: BLE001 (it raises what the task must see)
                self.give_up(error)
        self.check()

    def give_up(self, error: Exception) -> None:
        """End the table that is being read, because of an error that another try does not heal.

        Raises the error if another try may heal it, or if no signal has requested the table: then the task must not go on.
        """
        request = self._requests[0]
        if request.signal in OWN_SIGNALS or self._reader.is_transient(error):
            raise error
        log.error("Signal %s: the incremental snapshot of %s is given up: %s", request.signal, request.table, error)
        self._window = self._closed = None
        self._finish(request, "SQL_EXCEPTION")

    def _begin(self, request: Request) -> bool:
        """Read a chunk of a table, or end it if it has none. Return False to try again later."""
        schema = self._reader.schema(request.table)
        if schema is None:
            self._finish(request, "UNKNOWN_SCHEMA")
        elif not request.key:
            log.warning(
                "Signal %s: the incremental snapshot of %s is skipped: it has no primary key. Name a surrogate-key.",
                request.signal,
                request.table,
            )
            self._finish(request, "NO_PRIMARY_KEY")
        elif not self._prepare(request):
            self._finish(request, "EMPTY")
        else:
            return self._read(request, schema)
        return True

    def _prepare(self, request: Request) -> bool:
        if request.maximum is None:
            request.maximum = self._reader.maximum(request)
            self._state = None
        if request.total is None and self._notifications.enabled:
            request.total = self._reader.count(request)
        return request.maximum is not None

    def _read(self, request: Request, schema: TableSchema) -> bool:
        """Read a chunk into a window. Return False to try again later."""
        window = _Window(str(uuid.uuid4()), schema)
        if self.read_only:
            chunk = self._reader.read_only_chunk(request, schema, self._config.signals.chunk_size)
            if chunk is None:
                return False
            (rows, end), window.mark = chunk
            window.opened = True
        else:
            rows, end = self._read_between_marks(request, window)
        if end is not None and end == request.after:  # it would be read for ever
            raise DataError(f"The server does not compare the key {end} of {request.table} as it sorts it. Name a surrogate-key.")
        self._window = window
        for row in rows:
            window.rows.setdefault(self._reader.identity(schema, row, logged=False), []).append(row)
        request.last = end is None
        if end is not None:
            request.after = end
        return True

    def _read_between_marks(self, request: Request, window: _Window) -> Chunk:
        data = {"openWindowTimestamp": _now()}
        common = {"correlationId": request.signal, "dataCollectionId": str(request.table)}
        self._reader.insert_mark(f"{window.identifier}-open", OPEN, json.dumps({**data, **common}))
        chunk = self._reader.chunk(request, window.schema, self._config.signals.chunk_size)
        if self._config.signals.delete_watermarks:
            self._reader.delete_mark(f"{window.identifier}-open")
        else:
            closed = {**data, "closeWindowTimestamp": _now(), **common}
            self._reader.insert_mark(f"{window.identifier}-close", CLOSE, json.dumps(closed))
        return chunk

    def check(self) -> None:
        """Close the window if the log has reached its mark. Call it between transactions."""
        window = self._window
        if window is not None and window.mark is not None and self._reader.reached(window.mark):
            self._closed = window

    def mark(self, identifier: str, *, deleted: bool = False) -> bool:
        """Handle a row of the signal table; return True if it is a mark."""
        window = self._window
        if window is None or not identifier.startswith(window.identifier):
            return identifier.endswith(("-open", "-close"))
        if identifier.endswith("-open") and not deleted:
            window.opened = True
        else:
            self._closed = window
        return True

    def changed(self, schema: TableSchema, row: Row) -> None:
        """Drop a row of the open window, because the log has a newer one."""
        window = self._window
        if window is None or not window.opened or window.schema.id != schema.id:
            return
        identity = self._reader.identity(schema, row, logged=True)
        same = window.rows.get(identity)
        if same:  # rows without key may be equal; one change is one of one of them
            same.pop()

    def closed_window(self) -> tuple[TableSchema, list[Row]] | None:
        """Return the rows of a window that was closed, once; None if none was. ``state`` is then the one after these rows."""
        window, self._closed = self._closed, None
        if window is None or not self._requests:
            return None
        self._window = self._state = None
        self.chunks_returned += 1
        request = self._requests[0]
        rows = [row for same in window.rows.values() for row in same]
        request.rows += len(rows)
        request.sent = request.after
        if request.last:
            self._finish(request, "SUCCEEDED")
        else:
            request.chunks += 1
            self._progress(request)
        return window.schema, rows

    def _progress(self, request: Request) -> None:
        total = request.total or 0
        self._notifications.add(
            request.signal,
            "IN_PROGRESS",
            INCREMENTAL,
            chunk_index=str(request.chunks),
            last_processed_key=",".join(map(str, request.after or ())),
            total_rows=str(total),
            current_collection_in_progress=str(request.table),
            total_chunks=str(-(-total // self._config.signals.chunk_size)),
            maximum_key=",".join(map(str, request.maximum or ())),
            data_collections=request.tables,
        )

    def _finish(self, request: Request, status: str) -> None:
        """End a table, and the signal's snapshot with its last table."""
        self._requests.popleft()
        self._state = None
        self._ended(request, status)

    def _ended(self, request: Request, status: str) -> None:
        self._notifications.add(
            request.signal,
            "TABLE_SCAN_COMPLETED",
            INCREMENTAL,
            scanned_collection=str(request.table),
            total_rows_scanned=str(request.rows),
            total_rows=str(request.total or 0),
            data_collections=request.tables,
            status=status,
        )
        if not any(each.signal == request.signal for each in self._requests):
            log.info("Incremental snapshot %s is complete", request.signal)
            self._notifications.add(request.signal, "COMPLETED", INCREMENTAL)


def _now() -> str:
    nanos = time.time_ns()
    moment = dt.datetime.fromtimestamp(nanos // 1_000_000_000, dt.timezone.utc)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{nanos % 1_000_000_000:09d}Z"
