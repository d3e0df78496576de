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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from sluiceway.connectors.cdc.config import CommonConfig
from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.incremental_offsets import Request, loaded, stored
from sluiceway.connectors.cdc.notifications import INCREMENTAL, Notifications
from sluiceway.connectors.cdc.tables import Row, RowReader, TableSchema

log = logging.getLogger(__name__)

OPEN, CLOSE = "snapshot-window-open", "snapshot-window-close"

Mark = tuple[Any, ...]
"""A position of the log at which a chunk was read."""


class ReadOnlyChunk(NamedTuple):
    """The rows of a chunk, and the position that the log must reach before they may be returned."""

    rows: list[Row]
    mark: Mark


class ChunkReader(Protocol):
    """The database's part of incremental snapshots."""

    snapshot_values: bool
    """Whether rows have the values of a snapshot's query instead of the log's."""

    def schema(self, table: TableId) -> TableSchema | None:
        """Return a table's schema as it is now, or None if there is no such table."""

    def key(self, table: TableId) -> Sequence[str]:
        """Return the names of the primary key's columns."""

    def kinds(self, request: Request) -> Sequence[str]:
        """Return the Java classes of the values of the request's key."""

    def count(self, request: Request) -> int: ...

    def maximum(self, request: Request) -> list[Any] | None:
        """Return the largest key, or None for an empty table."""

    def chunk(self, request: Request, schema: TableSchema, limit: int) -> list[Row]:
        """Return the rows with keys greater than ``after``, up to the maximum, in key order."""

    def read_only_chunk(self, request: Request, schema: TableSchema, limit: int) -> ReadOnlyChunk | None:
        """Return the rows as ``chunk``, and a mark; None to try again, because the log is ahead of what queries see."""

    def reached(self, mark: Mark) -> bool:
        """Tell whether the log has been read up to a mark."""

    def insert_mark(self, identifier: str, kind: str, data: str) -> None:
        """Insert a row into the signal table."""

    def delete_mark(self, identifier: str) -> None: ...


@dataclass(slots=True)
class _Window:
    identifier: str
    schema: TableSchema
    rows: dict[Any, Row] = field(default_factory=dict)
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
            each.key = tuple(each.surrogate.split(",")) if each.surrogate else tuple(self._reader.key(each.table))
            if each.key:
                each.kinds = tuple(self._reader.kinds(each))
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
        waiting = {each.table for each in self._requests}
        tables = [table for table in tables if table not in waiting]
        names = ",".join(map(str, tables))
        self._notifications.add(signal, "STARTED", INCREMENTAL, data_collections=names)
        self._notifications.add(signal, "DATA_COLLECTIONS_RESOLVED", INCREMENTAL, data_collections=names)
        for table in tables:
            key = tuple(surrogate.split(",")) if surrogate else tuple(self._reader.key(table))
            if not key:
                log.warning(
                    "Incremental snapshot of %s skipped: it has no primary key. Name a surrogate-key in the signal.", table
                )
                continue
            request = Request(table, signal, conditions.get(str(table)), surrogate, key, tables=names)
            request.kinds = tuple(self._reader.kinds(request))
            self._requests.append(request)
        self._state = None

    def stop(self, signal: str, tables: Sequence[TableId] | None) -> None:
        """Stop reading these tables, or all."""
        current = self._requests[0].table if self._requests else None
        self._requests = deque(each for each in self._requests if tables is not None and each.table not in tables)
        if tables is None or current in tables:
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
            schema = self._reader.schema(request.table)
            if schema is None or not self._prepare(request):
                self._finish(request, "EMPTY" if schema is not None else "UNKNOWN_SCHEMA")
                continue
            if not self._read(request, schema):
                return
        self.check()

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
            rows, window.mark = chunk
            window.opened = True
        else:
            rows = self._read_between_marks(request, window)
        self._window = window
        key, value = _readers(schema, snapshot=self._reader.snapshot_values)
        for row in rows:
            window.rows[_identity(key, value, row)] = row
        request.last = not rows
        if rows:
            positions = [schema.columns.index(name) for name in request.key]
            request.after = [rows[-1][position] for position in positions]
        return True

    def _read_between_marks(self, request: Request, window: _Window) -> list[Row]:
        data = {"openWindowTimestamp": _now()}
        common = {"correlationId": request.signal, "dataCollectionId": str(request.table)}
        self._reader.insert_mark(f"{window.identifier}-open", OPEN, json.dumps({**data, **common}))
        rows = self._reader.chunk(request, window.schema, self._config.signals.chunk_size)
        if self._config.signals.delete_watermarks:
            self._reader.delete_mark(f"{window.identifier}-open")
        else:
            closed = {**data, "closeWindowTimestamp": _now(), **common}
            self._reader.insert_mark(f"{window.identifier}-close", CLOSE, json.dumps(closed))
        return rows

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
        if window is not None and window.opened and window.schema.id == schema.id:
            window.rows.pop(_identity(schema.key, schema.value, row), None)

    def closed_window(self) -> tuple[TableSchema, list[Row]] | None:
        """Return the rows of a window that was closed, once; None if none was. ``state`` is then the one after these rows."""
        window, self._closed = self._closed, None
        if window is None or not self._requests:
            return None
        self._window = self._state = None
        self.chunks_returned += 1
        request = self._requests[0]
        rows = list(window.rows.values())
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


def _readers(schema: TableSchema, *, snapshot: bool) -> tuple[RowReader | None, RowReader]:
    return (schema.snapshot_key, schema.snapshot_value) if snapshot else (schema.key, schema.value)


def _identity(key: RowReader | None, value: RowReader, row: Row) -> str:
    """Return what identifies a row in chunk and log: its key, or all its values if its table has none."""
    return repr((value if key is None else key)(row).values_)


def _now() -> str:
    nanos = time.time_ns()
    moment = dt.datetime.fromtimestamp(nanos // 1_000_000_000, dt.timezone.utc)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{nanos % 1_000_000_000:09d}Z"
