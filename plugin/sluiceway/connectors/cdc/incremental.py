"""Incremental snapshots (DBLog): reads tables in chunks between two marks in the log, while the log goes on.

A chunk's rows wait in a window until the log has its closing mark; changes seen between the marks drop their rows.
"""

from __future__ import annotations

import datetime as dt
import json
import logging
import time
import uuid
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from sluiceway.connectors.cdc.config import CommonConfig
from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.notifications import INCREMENTAL, Notifications
from sluiceway.connectors.cdc.tables import Row, TableSchema
from sluiceway.data import Struct

log = logging.getLogger(__name__)

STATE = "sluiceway_incremental_snapshot"
OPEN, CLOSE = "snapshot-window-open", "snapshot-window-close"

KeyValues = Sequence[Any]


@dataclass(slots=True)
class Request:
    """A table to read, in the order of the columns ``key``.

    ``after`` is the last key that was read, ``sent`` the last one whose rows were returned, where a restart goes on.
    """

    table: TableId
    signal: str
    tables: str
    condition: str | None = None
    key: tuple[str, ...] = ()
    after: list[Any] | None = None
    sent: list[Any] | None = None
    maximum: list[Any] | None = None
    chunks: int = 0
    rows: int = 0
    total: int | None = None
    last: bool = False


class ChunkReader(Protocol):
    """The database's part of incremental snapshots."""

    def schema(self, table: TableId) -> TableSchema | None:
        """Return a table's schema as it is now, or None if there is no such table."""

    def key(self, table: TableId) -> Sequence[str]: ...

    def count(self, request: Request) -> int: ...

    def maximum(self, request: Request) -> list[Any] | None:
        """Return the largest key, or None for an empty table."""

    def chunk(self, request: Request, schema: TableSchema, limit: int) -> list[Row]:
        """Return the rows with keys greater than ``after``, up to the maximum, in key order."""

    def insert_mark(self, identifier: str, kind: str, data: str) -> None:
        """Insert a row into the signal table."""

    def delete_mark(self, identifier: str) -> None: ...


@dataclass(slots=True)
class _Window:
    identifier: str
    schema: TableSchema
    rows: dict[Any, Row] = field(default_factory=dict)
    opened: bool = False


class IncrementalSnapshots:
    """The incremental snapshots of one connector, one table after the other."""

    def __init__(self, config: CommonConfig, reader: ChunkReader, notifications: Notifications) -> None:
        self._config = config
        self._reader = reader
        self._notifications = notifications
        self._requests: deque[Request] = deque()
        self._window: _Window | None = None
        self._closed: _Window | None = None
        self._paused = False

    @property
    def running(self) -> bool:
        return bool(self._requests)

    def load(self, offset: Mapping[str, Any]) -> None:
        """Continue the snapshots of a stored offset."""
        stored = offset.get(STATE)
        for entry in json.loads(stored) if stored else ():
            table = TableId(*entry.pop("table"))
            self._requests.append(Request(table, key=tuple(entry.pop("key")), **entry))

    def state(self) -> dict[str, Any]:
        """Return the part of the source offset that describes the snapshots under way."""
        if not self._requests:
            return {}
        kept = [
            {
                "table": list(each.table),
                "signal": each.signal,
                "tables": each.tables,
                "condition": each.condition,
                "key": list(each.key),
                "after": each.sent,
                "sent": each.sent,
                "maximum": each.maximum,
                "chunks": each.chunks,
                "rows": each.rows,
            }
            for each in self._requests
        ]
        return {STATE: json.dumps(kept, default=str)}

    def add(self, signal: str, tables: Sequence[TableId], conditions: Mapping[str, str], surrogate: str | None) -> None:
        """Add tables to read, in this order."""
        names = ",".join(map(str, tables))
        self._notifications.add(signal, "STARTED", INCREMENTAL, data_collections=names)
        self._notifications.add(signal, "DATA_COLLECTIONS_RESOLVED", INCREMENTAL, data_collections=names)
        for table in tables:
            key = (surrogate,) if surrogate else tuple(self._reader.key(table))
            if not key:
                log.warning(
                    "Incremental snapshot of %s skipped: it has no primary key. Name a surrogate-key in the signal.", table
                )
                continue
            self._requests.append(Request(table, signal, names, conditions.get(str(table)), key))

    def stop(self, signal: str, tables: Sequence[TableId] | None) -> None:
        """Stop reading these tables, or all."""
        self._requests = deque(each for each in self._requests if tables is not None and each.table not in tables)
        self._window = self._closed = None
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
            self._read(request, schema)

    def _prepare(self, request: Request) -> bool:
        if request.maximum is None:
            request.maximum = self._reader.maximum(request)
        if request.total is None:
            request.total = self._reader.count(request)
        return request.maximum is not None

    def _read(self, request: Request, schema: TableSchema) -> None:
        """Read a chunk between two marks."""
        self._window = window = _Window(str(uuid.uuid4()), schema)
        opened = _now()
        data = {"openWindowTimestamp": opened}
        common = {"correlationId": request.signal, "dataCollectionId": str(request.table)}
        self._reader.insert_mark(f"{window.identifier}-open", OPEN, json.dumps({**data, **common}))
        rows = self._reader.chunk(request, schema, self._config.chunk_size)
        positions = [schema.columns.index(name) for name in request.key]
        for row in rows:
            window.rows[_identity(schema, row)] = row
        request.last = not rows
        if rows:
            request.after = [rows[-1][position] for position in positions]
        if self._config.delete_watermarks:
            self._reader.delete_mark(f"{window.identifier}-open")
        else:
            closed = {**data, "closeWindowTimestamp": _now(), **common}
            self._reader.insert_mark(f"{window.identifier}-close", CLOSE, json.dumps(closed))

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
            window.rows.pop(_identity(schema, row), None)

    def closed_window(self) -> tuple[TableSchema, list[Row]] | None:
        """Return the rows of a window that was closed, once; None if none was."""
        window, self._closed = self._closed, None
        if window is None or not self._requests:
            return None
        self._window = None
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
            total_chunks=str(-(-total // self._config.chunk_size)),
            maximum_key=",".join(map(str, request.maximum or ())),
            data_collections=request.tables,
        )

    def _finish(self, request: Request, status: str) -> None:
        """End a table, and the signal's snapshot with its last table."""
        self._requests.popleft()
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
            self._notifications.add(request.signal, "COMPLETED", INCREMENTAL)


def _identity(schema: TableSchema, row: Row) -> Any:
    key = schema.key
    value: Struct | None = None if key is None else key(row)
    return repr(list(row)) if value is None else repr(value.values_)


def _now() -> str:
    nanos = time.time_ns()
    moment = dt.datetime.fromtimestamp(nanos // 1_000_000_000, dt.timezone.utc)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{nanos % 1_000_000_000:09d}Z"
