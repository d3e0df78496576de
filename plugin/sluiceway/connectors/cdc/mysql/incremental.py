"""Incremental snapshots: reads tables by chunks of their keys while the log is read (DBLog's watermarks).

A chunk is read between two rows that are inserted into the signal table. When the log has the first one, a window opens;
changes in the log remove their keys from the chunk; when the log has the second one, the rest of the chunk is emitted.
"""

from __future__ import annotations

import json
import time
import uuid
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sluiceway.api import SourceRecord
from sluiceway.connectors.cdc.emitter import Emitter
from sluiceway.connectors.cdc.envelope import INCREMENTAL
from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.mysql.binlog.rows import Row
from sluiceway.connectors.cdc.mysql.catalog import Catalog
from sluiceway.connectors.cdc.mysql.config import SourceConfig
from sluiceway.connectors.cdc.mysql.connection import Server, quoted
from sluiceway.connectors.cdc.mysql.ddl.model import TableDefinition, Tables
from sluiceway.connectors.cdc.mysql.offsets import LogPosition
from sluiceway.connectors.cdc.tables import TableSchema
from sluiceway.data import Struct

STATE_KEY = "sluiceway_incremental_snapshot"
"""The key of the source offset with the progress, as JSON."""


@dataclass
class Collection:
    """A table to read. ``key`` overrides the columns of the key; rows must meet ``condition``."""

    table: TableId
    condition: str | None = None
    key: str | None = None
    last: list[str | None] | None = None
    maximum: list[str | None] | None = None

    def document(self) -> dict[str, Any]:
        return {
            "table": list(self.table),
            "condition": self.condition,
            "key": self.key,
            "last": self.last,
            "maximum": self.maximum,
        }

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Collection:
        table = TableId(*document["table"])
        return cls(table, document["condition"], document["key"], document["last"], document["maximum"])


@dataclass
class _Chunk:
    """The rows of the current chunk by key, and the id of its watermarks."""

    id: str
    table: TableDefinition
    schema: TableSchema
    rows: dict[Struct, Row] = field(default_factory=dict)
    last: list[str | None] | None = None
    open: bool = False


class IncrementalSnapshot:
    """The incremental snapshot of one connector. Callers hold a lock."""

    def __init__(
        self,
        config: SourceConfig,
        emitter: Emitter,
        position: LogPosition,
        catalog: Catalog,
        tables: Tables,
        server: Callable[[], Server],
    ) -> None:
        self._config = config
        self._emitter = emitter
        self._position = position
        self._catalog = catalog
        self._tables = tables
        self._server = server
        self._waiting: deque[Collection] = deque()
        self._chunk: _Chunk | None = None
        self.paused = False

    @property
    def running(self) -> bool:
        return bool(self._waiting)

    def state(self) -> str | None:
        """Return the progress for the source offset, or None if no snapshot is running."""
        return json.dumps([each.document() for each in self._waiting]) if self._waiting else None

    def load(self, state: str) -> None:
        """Continue a snapshot of a stored offset."""
        self._waiting = deque(Collection.of(document) for document in json.loads(state))

    def add(self, collections: list[Collection]) -> None:
        """Add tables, and start reading unless a snapshot is running."""
        known = {each.table for each in self._waiting}
        was_running = self.running
        self._waiting += [each for each in collections if each.table not in known]
        if not was_running:
            self.next_chunk()

    def remove(self, matches: Callable[[TableId], bool]) -> None:
        """Remove tables; the current chunk is dropped if its table is one of them."""
        current = self._waiting[0].table if self._waiting else None
        self._waiting = deque(each for each in self._waiting if not matches(each.table))
        if current is not None and matches(current):
            self._chunk = None
            self.next_chunk()

    def resume(self) -> None:
        self.paused = False
        if self._chunk is None:
            self.next_chunk()

    # -- events of the log

    def opened(self, identifier: str) -> None:
        """The log has the row before a chunk."""
        if self._chunk is not None and identifier == f"{self._chunk.id}-open":
            self._chunk.open = True

    def closed(self, identifier: str) -> list[SourceRecord]:
        """The log has the row after a chunk: return the records of the rest, and read the next chunk."""
        chunk = self._chunk
        if chunk is None or identifier != f"{chunk.id}-{self._closing}":
            return []
        self._chunk = None
        if self._waiting and chunk.last is not None:
            self._waiting[0].last = chunk.last
        records = self._records(chunk)
        if not self.paused:
            self.next_chunk()
        return records

    def changed(self, table: TableId, before: Row | None, after: Row | None) -> None:
        """The log has a change of a row, which is newer than the chunk's."""
        chunk = self._chunk
        if chunk is None or not chunk.open or chunk.table.id != table or chunk.schema.key is None:
            return
        for row in (before, after):
            if row is not None:
                chunk.rows.pop(chunk.schema.key(row), None)

    def _records(self, chunk: _Chunk) -> list[SourceRecord]:
        table = chunk.table.id
        block = self._position.block(table.schema, table.table, snapshot=INCREMENTAL)
        offset = self._position.offset()
        return [self._emitter.read(chunk.schema, row, block, offset) for row in chunk.rows.values()]

    # -- chunks

    @property
    def _closing(self) -> str:
        return "open" if self._config.common.delete_watermarks else "close"

    def next_chunk(self) -> None:
        """Read the next chunk between its watermarks; go to the next table at the end of one."""
        if self.paused or not self._waiting:
            return
        identifier = str(uuid.uuid4())
        opened = _timestamp()
        self._mark(f"{identifier}-open", "snapshot-window-open", {"openWindowTimestamp": opened})
        while self._waiting:
            chunk = self._read(self._waiting[0], identifier)
            if chunk is not None:
                self._chunk = chunk
                break
            self._waiting.popleft()
        if self._config.common.delete_watermarks:
            self._execute(f"DELETE FROM {self._signal_table()} WHERE id = %s", (f"{identifier}-open",))  # noqa: S608
            return
        times = {"openWindowTimestamp": opened, "closeWindowTimestamp": _timestamp()}
        self._mark(f"{identifier}-close", "snapshot-window-close", times)

    def _mark(self, identifier: str, kind: str, times: Mapping[str, str]) -> None:
        self._execute(f"INSERT INTO {self._signal_table()} VALUES (%s, %s, %s)", (identifier, kind, json.dumps(times)))  # noqa: S608

    def _signal_table(self) -> str:
        database, _, table = (self._config.common.signal_table or "").partition(".")
        return f"{quoted(database)}.{quoted(table)}"

    def _execute(self, sql: str, parameters: tuple[object, ...]) -> None:
        self._server().rows(sql, parameters)

    def _read(self, collection: Collection, identifier: str) -> _Chunk | None:
        """Return the next chunk of a table, or None if there are no more rows."""
        table = self._tables.get(collection.table)
        if table is None or not self._config.captures(collection.table):
            return None
        schema = self._catalog.schema(table)
        key = collection.key.split(",") if collection.key else list(table.primary_key)
        if not key or schema.snapshot_key is None:
            return None
        if collection.maximum is None:
            found = self._server().rows(*self._maximum_query(table, key, collection))
            if not found:
                return None
            collection.maximum = list(found[0])
        rows = self._server().rows(*self._chunk_query(table, key, collection))
        if not rows:
            return None
        chunk = _Chunk(identifier, table, schema)
        positions = [table.position(name) or 0 for name in key]
        for row in rows:
            chunk.rows[schema.snapshot_key(row)] = row
        chunk.last = [rows[-1][position] for position in positions]
        return chunk

    def _maximum_query(self, table: TableDefinition, key: list[str], collection: Collection) -> tuple[str, list[object]]:
        names = ", ".join(map(quoted, key))
        where = f" WHERE {_condition(collection)}" if collection.condition else ""
        order = ", ".join(f"{quoted(name)} DESC" for name in key)
        return f"SELECT {names} FROM {_name(table)}{where} ORDER BY {order} LIMIT 1", []  # noqa: S608

    def _chunk_query(self, table: TableDefinition, key: list[str], collection: Collection) -> tuple[str, list[object]]:
        conditions, parameters = [], []
        if collection.last is not None:
            text, values = _after(key, collection.last)
            conditions.append(text)
            parameters += values
        if collection.maximum is not None:
            text, values = _after(key, collection.maximum)
            conditions.append(f"NOT {text}")
            parameters += values
        if collection.condition:
            conditions.append(_condition(collection))
        columns = ", ".join(quoted(column.name) for column in table.columns)
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        order = ", ".join(map(quoted, key))
        limit = self._config.common.chunk_size
        return f"SELECT {columns} FROM {_name(table)}{where} ORDER BY {order} LIMIT {limit}", parameters  # noqa: S608


def _name(table: TableDefinition) -> str:
    return f"{quoted(table.id.schema)}.{quoted(table.id.table)}"


def _condition(collection: Collection) -> str:
    return "(" + (collection.condition or "").replace("%", "%%") + ")"


def _after(key: list[str], values: list[str | None]) -> tuple[str, list[object]]:
    """Return the condition that a row's key is greater than these values, and its parameters."""
    alternatives, parameters = [], []
    for index, name in enumerate(key):
        equal = [f"{quoted(other)} = %s" for other in key[:index]]
        alternatives.append("(" + " AND ".join([*equal, f"{quoted(name)} > %s"]) + ")")
        parameters += values[: index + 1]
    return "(" + " OR ".join(alternatives) + ")", list(parameters)


def _timestamp() -> str:
    """Return the time as Java prints an instant with nanoseconds."""
    nanos = time.time_ns()
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(nanos // 1_000_000_000)) + f".{nanos % 1_000_000_000:09d}Z"
